//! Which addresses are on the open net. Where a public server names others to speak with, they must be public as well:
//! otherwise it could have us knock at doors within the user's own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far connections may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Anywhere,
    /// Not to this machine nor its neighbours.
    Public,
}

impl Reach {
    pub(super) fn includes(self, address: IpAddr) -> bool {
        self == Self::Anywhere || is_public(address)
    }
}

/// Whether an address belongs to the open net.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => is_public_v4(address),
            // 2000::/3 is all that has been given out, and a part of it is for documents only.
            None => address.segments()[0] & 0xe000 == 0x2000 && address.segments()[..2] != [0x2001, 0x0db8],
        },
    }
}

/// The older address within a newer one: mapped, translated (64:ff9b::/96) or tunnelled (2002::/16).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(joined(high, low)),
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = match first {
        0 | 10 | 127 | 224.. => true,
        100 => (64..128).contains(&second),
        169 => second == 254,
        172 => (16..32).contains(&second),
        192 => matches!((second, third), (168, _) | (0, 0 | 2) | (88, 99)),
        198 => matches!((second, third), (18 | 19, _) | (51, 100)),
        203 => (second, third) == (0, 113),
        _ => false,
    };
    !is_special
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn the_open_net_is_told_from_the_rest() {
        for (address, expected) in [
            ("1.1.1.1", true),
            ("172.15.0.1", true),
            ("172.32.0.1", true),
            ("100.63.0.1", true),
            ("192.0.1.1", true),
            ("2606:4700::1111", true),
            ("2002:0101:0101::1", true),
            ("64:ff9b::1.1.1.1", true),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("100.64.0.1", false),
            ("127.1.2.3", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("192.168.0.1", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("64:ff9b::10.0.0.1", false),
            ("2002:7f00:0001::1", false),
            ("2001:db8::1", false),
            ("fc00::1", false),
            ("fe80::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
}
