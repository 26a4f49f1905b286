//! What the system knows of a process.

use std::fs;

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

/// The time that it has kept a processor busy, in seconds.
pub fn cpu_seconds(pid: i32) -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in brackets, may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or(Vec::new(), |(_, rest)| rest.split(' ').collect());
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}
