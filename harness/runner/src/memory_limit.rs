//! The memory limit of child processes: compilers and workers.
//!
//! The limit applies to the resident memory of a child and its descendants, which is read from `/proc`. Other
//! systems have no limit. A limit on address space (`RLIMIT_AS`) would not work: GPU drivers reserve far more
//! address space than they use.

use std::fs;
use std::process::Child;
use std::sync::OnceLock;
use std::time::Duration;

/// Upper bound on the processes that are counted for one child.
const MAX_PROCESSES: usize = 256;
/// The limit if the memory of the machine is unknown.
const DEFAULT_BYTES: u64 = 8 << 30;
/// The score that makes the kernel end a child before its parent if memory is exhausted (0 to 1000).
const OOM_SCORE: &str = "500";

static LIMIT: OnceLock<u64> = OnceLock::new();

/// Sets the limit of this process in bytes. Only the first call has an effect, and it must precede [`limit`].
pub fn set_limit(bytes: u64) {
    // A second value is a second command line, which does not exist.
    let _ = LIMIT.set(bytes);
}

/// Returns the limit in bytes: the one that was set, otherwise half of the memory of the machine or its control
/// group.
pub fn limit() -> u64 {
    *LIMIT.get_or_init(|| machine_bytes().map_or(DEFAULT_BYTES, |bytes| bytes / 2))
}

/// Returns the memory in bytes that a child and its descendants use if it exceeds `limit`.
pub fn usage_above_limit(child: &Child, limit: u64) -> Option<u64> {
    let used = process_tree(child.id()).into_iter().filter_map(resident_bytes).sum();
    (used > limit).then_some(used)
}

/// The processor time of a process and its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorUsage {
    pub time: Duration,
    /// True if a thread runs, or waits for a processor or a disk.
    pub is_runnable: bool,
}

/// Returns the processor time of a child and its descendants; zero where there is no `/proc`.
pub fn processor_usage(child: &Child) -> ProcessorUsage {
    let mut all = ProcessorUsage::default();
    for pid in process_tree(child.id()) {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            if let Some(usage) = parse_usage(&stat) {
                all.time += usage.time;
                all.is_runnable |= usage.is_runnable;
            }
        }
    }
    all
}

/// Reads a line of `/proc/PID/stat`: after the name in parentheses the state, and in ticks of 10 ms the user and system time.
fn parse_usage(stat: &str) -> Option<ProcessorUsage> {
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    let is_runnable = matches!(fields.next()?, "R" | "D");
    let mut ticks = fields.skip(10).map_while(|field| field.parse::<u64>().ok());
    let ticks = ticks.next()?.saturating_add(ticks.next()?);
    Some(ProcessorUsage { time: Duration::from_millis(ticks.saturating_mul(10)), is_runnable })
}

/// Makes the kernel end this child before its parent if memory is exhausted.
pub fn prefer_for_oom_killer(child: &Child) {
    // The child may have ended, and not every system has this file.
    let _ = fs::write(format!("/proc/{}/oom_score_adj", child.id()), OOM_SCORE);
}

/// Kills the descendants of a child. The caller kills the child itself.
pub fn kill_descendants(child: &Child) {
    #[cfg(unix)]
    for pid in process_tree(child.id()).into_iter().skip(1) {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // A process that has ended needs no signal.
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
    }
    #[cfg(not(unix))]
    let _ = child;
}

/// Returns a process and its descendants, parents first.
fn process_tree(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied().filter(|_| all.len() < MAX_PROCESSES) {
        next += 1;
        all.extend(children_of(pid));
    }
    all
}

/// Returns the children of a process.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    // The kernel lists a child with the thread that started it.
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let numbers =
        |list: String| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>();
    lists.flat_map(numbers).collect()
}

/// Returns the resident memory of a process.
fn resident_bytes(pid: u32) -> Option<u64> {
    parse_kibibytes(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

/// Returns the memory of the machine, or of the control group if that is less.
fn machine_bytes() -> Option<u64> {
    let machine = parse_kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    // The text is `max` if the group has no limit.
    let group = group.and_then(|text| text.trim().parse::<u64>().ok());
    Some(group.map_or(machine, |group| group.min(machine)))
}

/// Returns the value in bytes of a line `KEY NUMBER kB`.
fn parse_kibibytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        assert_eq!(parse_kibibytes("Name: x\nVmRSS:\t   12 kB\n", "VmRSS:"), Some(12 * 1024));
        assert_eq!(parse_kibibytes("Name: x\n", "VmRSS:"), None);
        let stat = "17 (a) b) R 1 17 17 0 -1 4194560 0 0 0 0 12 3 0 0 20 0";
        let usage = ProcessorUsage { time: Duration::from_millis(150), is_runnable: true };
        assert_eq!(parse_usage(stat), Some(usage));
        assert_eq!(parse_usage("17 (a) S 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn descendants_are_counted_and_killed() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "sleep 60 & sleep 60; true"]).spawn().unwrap();
        while process_tree(child.id()).len() < 3 {
            std::thread::yield_now();
        }
        assert!(usage_above_limit(&child, 0).is_some());
        assert_eq!(usage_above_limit(&child, u64::MAX), None);
        kill_descendants(&child);
        child.wait().unwrap();
    }
}
