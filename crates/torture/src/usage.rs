//! What a process takes of the machine, as the kernel counts it.

use std::fs;
use std::time::Duration;

/// The kernel counts time for programs in hundredths of a second, on every machine.
const TICK: Duration = Duration::from_millis(10);

/// The time that a process has had of a processor, all its threads together, its children not.
pub fn cpu(pid: i32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name, in brackets, may hold anything; what follows is numbers.
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let ticks: u32 = rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().unwrap()).sum();
    TICK * ticks
}

/// The memory that a process has now, in MiB.
pub fn resident(pid: i32) -> f64 {
    memory(pid, "VmRSS:")
}

/// The most that it ever had.
pub fn most_resident(pid: i32) -> f64 {
    memory(pid, "VmHWM:")
}

fn memory(pid: i32, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

#[cfg(test)]
mod tests {
    #[test]
    fn own_time_and_memory_grow() {
        let own = i32::try_from(std::process::id()).unwrap();
        let before = super::cpu(own);
        let memory = super::resident(own);
        let mut block = Vec::new();
        while super::cpu(own) <= before {
            block.extend_from_slice(&[1_u8; 4096]);
        }
        assert!(memory > 0.0 && super::most_resident(own) >= memory);
        assert!(!block.is_empty());
    }
}
