//! What the system knows of a process.

use std::fs;
use std::time::Duration;

/// A number of `/proc/PID/status`, as it stands there.
fn status(pid: i32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The memory that it holds, in KiB.
pub fn memory(pid: i32) -> u64 {
    status(pid, "VmRSS")
}

/// The most memory that it held since [`forget_peak`], in KiB.
pub fn peak_memory(pid: i32) -> u64 {
    status(pid, "VmHWM")
}

/// Lets the count of [`peak_memory`] begin anew.
pub fn forget_peak(pid: i32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

pub fn open_files(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// The time that it has kept a processor busy, all its threads together, its children not.
pub fn cpu(pid: i32) -> Duration {
    /// The kernel counts time for programs in hundredths of a second, on every machine.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name, in brackets, may hold anything; what follows is numbers.
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let ticks: u32 = rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().unwrap()).sum();
    TICK * ticks
}

#[cfg(test)]
mod tests {
    #[test]
    fn own_time_and_memory_grow() {
        let own = i32::try_from(std::process::id()).unwrap();
        let before = super::cpu(own);
        let memory = super::memory(own);
        let mut block = Vec::new();
        while super::cpu(own) <= before {
            block.extend_from_slice(&[1_u8; 4096]);
        }
        assert!(memory > 0 && super::peak_memory(own) >= memory);
        assert!(!block.is_empty());
    }
}
