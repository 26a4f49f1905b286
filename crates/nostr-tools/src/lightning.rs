//! As much of Lightning as zaps need: what an invoice says (BOLT 11), and who asks for it ([`lnurl`]).

pub(crate) mod lnurl;

use ring::digest::{SHA256, digest};

/// No invoice is longer; they travel in URLs and QR codes.
const MAX_INVOICE: usize = 7_000;

/// Seconds since 1970 need 35 bits, a signature and its recovery 520; all in groups of 5.
const TIMESTAMP: usize = 7;
const SIGNATURE: usize = 104;

/// What an invoice says. Its signature is the wallet's affair, not ours: whoever pays it checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invoice {
    /// In thousandths of a satoshi; some leave it to the payer.
    pub(crate) amount: Option<u64>,
    pub(crate) timestamp: u64,
    /// Seconds from then.
    pub(crate) expiry: u64,
    pub(crate) payment_hash: Option<[u8; 32]>,
    pub(crate) description_hash: Option<[u8; 32]>,
}

impl Invoice {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("lightning:").unwrap_or(text);
        let (prefix, data) = decode(text, MAX_INVOICE)?;
        let amount = amount(prefix.strip_prefix("ln")?)?;
        let fields = data.get(TIMESTAMP..data.len().checked_sub(SIGNATURE)?)?;
        let mut invoice = Self {
            amount,
            timestamp: number(&data[..TIMESTAMP]),
            expiry: 3600,
            payment_hash: None,
            description_hash: None,
        };
        let mut rest = fields;
        while let [kind, high, low, tail @ ..] = rest {
            let length = usize::from(*high) * 32 + usize::from(*low);
            let field = tail.get(..length)?;
            rest = &tail[length..];
            match kind {
                1 => invoice.payment_hash = invoice.payment_hash.or(hash(field)),
                23 => invoice.description_hash = invoice.description_hash.or(hash(field)),
                6 if length <= 12 => invoice.expiry = number(field),
                _ => {}
            }
        }
        Some(invoice)
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

/// The amount in the part before the data, such as `bc2500u`: a currency, digits, and a fraction of a bitcoin.
#[expect(clippy::option_option, reason = "no amount is right, a wrong one is not")]
fn amount(text: &str) -> Option<Option<u64>> {
    let digits_at = text.find(|c: char| c.is_ascii_digit());
    let Some(digits_at) = digits_at else { return Some(None) };
    let (digits, unit) = match text[digits_at..].strip_suffix(['m', 'u', 'n', 'p']) {
        Some(digits) => (digits, text.as_bytes()[text.len() - 1]),
        None => (&text[digits_at..], b'1'),
    };
    if digits.is_empty() || digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    // In thousandths of a satoshi, of which a bitcoin has 10^11.
    let amount = match unit {
        b'm' => number.checked_mul(100_000_000)?,
        b'u' => number.checked_mul(100_000)?,
        b'n' => number.checked_mul(100)?,
        b'p' if number.is_multiple_of(10) => number / 10,
        b'p' => return None,
        _ => number.checked_mul(100_000_000_000)?,
    };
    Some(Some(amount))
}

fn number(groups: &[u8]) -> u64 {
    groups.iter().fold(0, |number, group| (number << 5) | u64::from(*group))
}

fn hash(groups: &[u8]) -> Option<[u8; 32]> {
    bytes(groups).and_then(|bytes| bytes.try_into().ok())
}

const LETTERS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// Reads bech32 (BIP 173) of any length: the part before the last `1`, and the groups of 5 bits after it.
pub(crate) fn decode(text: &str, longest: usize) -> Option<(String, Vec<u8>)> {
    let is_mixed = text.bytes().any(|b| b.is_ascii_lowercase()) && text.bytes().any(|b| b.is_ascii_uppercase());
    if text.len() > longest || is_mixed || !text.is_ascii() {
        return None;
    }
    let text = text.to_ascii_lowercase();
    let (prefix, data) = text.rsplit_once('1')?;
    let groups: Option<Vec<u8>> = data
        .bytes()
        .map(|letter| LETTERS.iter().position(|one| *one == letter).and_then(|place| u8::try_from(place).ok()))
        .collect();
    let mut groups = groups.filter(|groups| groups.len() >= 6 && !prefix.is_empty())?;
    if checksum(prefix, &groups) != 1 {
        return None;
    }
    groups.truncate(groups.len() - 6);
    Some((prefix.to_owned(), groups))
}

pub(crate) fn encode(prefix: &str, data: &[u8]) -> String {
    let mut groups = groups(data);
    let mut checked = groups.clone();
    checked.extend([0; 6]);
    let sum = checksum(prefix, &checked) ^ 1;
    groups.extend((0..6).map(|place| ((sum >> (5 * (5 - place))) & 31) as u8));
    let letters = groups.iter().map(|group| char::from(LETTERS[usize::from(*group)]));
    format!("{prefix}1{}", letters.collect::<String>())
}

fn checksum(prefix: &str, data: &[u8]) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let high = prefix.bytes().map(|byte| byte >> 5);
    let low = prefix.bytes().map(|byte| byte & 31);
    high.chain([0]).chain(low).chain(data.iter().copied()).fold(1, |sum, value| {
        let top = sum >> 25;
        let sum = ((sum & 0x01ff_ffff) << 5) ^ u32::from(value);
        GENERATOR.iter().enumerate().fold(sum, |sum, (bit, word)| if top >> bit & 1 == 1 { sum ^ word } else { sum })
    })
}

/// Groups of 5 bits as bytes; what does not fill a byte must be zero.
pub(crate) fn bytes(groups: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut rest, mut bits) = (Vec::new(), 0u32, 0);
    for group in groups {
        rest = (rest << 5) | u32::from(*group);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((rest >> bits & 0xff) as u8);
            rest &= (1 << bits) - 1;
        }
    }
    (bits < 5 && rest == 0).then_some(bytes)
}

fn groups(bytes: &[u8]) -> Vec<u8> {
    let (mut groups, mut rest, mut bits) = (Vec::new(), 0u32, 0);
    for byte in bytes {
        rest = (rest << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            groups.push((rest >> bits & 31) as u8);
            rest &= (1 << bits) - 1;
        }
    }
    if bits > 0 {
        groups.push((rest << (5 - bits) & 31) as u8);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::{Invoice, bytes, decode, encode, sha256};

    /// The examples of BOLT 11.
    const COFFEE: &str = "lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh";
    const HASHED: &str = "lnbc20m1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqhp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqs9qrsgq7ea976txfraylvgzuxs8kgcw23ezlrszfnh8r6qtfpr6cxga50aj6txm9rxrydzd06dfeawfk6swupvz4erwnyutnjq7x39ymw6j38gp7ynn44";

    #[test]
    fn invoices_are_read() {
        let coffee = Invoice::parse(COFFEE).unwrap();
        assert_eq!((coffee.amount, coffee.timestamp, coffee.expiry), (Some(250_000_000), 1_496_314_658, 60));
        let words = "One piece of chocolate cake, one icecream cone, one pickle, one slice of swiss cheese, one slice of \
                     salami, one lollypop, one piece of cherry pie, one sausage, one cupcake, and one slice of watermelon";
        let hashed = Invoice::parse(&HASHED.to_uppercase()).unwrap();
        assert_eq!((hashed.amount, hashed.description_hash), (Some(2_000_000_000), Some(sha256(words.as_bytes()))));
        assert!(hashed.payment_hash.is_some());
    }

    #[test]
    fn damage_is_noticed() {
        for place in [8, 40, 100, COFFEE.len() - 1] {
            let mut text = COFFEE.to_owned();
            let other = if &text[place..=place] == "q" { "p" } else { "q" };
            text.replace_range(place..=place, other);
            assert_eq!(Invoice::parse(&text), None, "{place}");
        }
        for bad in
            ["", "lnbc", "lnbc1", "ln1qqqqqq", "äö1qqqqqq", &encode("lnbc9x", &[0; 100]), &encode("lnbc", &[0; 10])]
        {
            assert_eq!(Invoice::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for length in 0..40 {
            let data: Vec<u8> = (0..length).collect();
            let (prefix, groups) = decode(&encode("lnurl", &data), 1000).unwrap();
            assert_eq!((prefix.as_str(), bytes(&groups)), ("lnurl", Some(data)));
        }
    }
}
