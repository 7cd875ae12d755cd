//! What Linux tells of processes and of the machine, read from `/proc`. Deliberately absent: other systems.

use std::fs;

use crate::trouble::{Doing, Result, Trouble};

/// Ticks per second of `/proc/*/stat`: user space has seen 100 since Linux 2.4, whatever the kernel's own.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds of a process: its own, and those of its children that have ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu {
    /// User and system time of all its threads, ended ones included.
    pub own: f64,
    /// The same of its children that were waited for.
    pub children: f64,
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).doing(&format!("read {path}"))
}

/// CPU seconds used so far, to 10 ms.
pub fn cpu(pid: u32) -> Result<Cpu> {
    let path = format!("/proc/{pid}/stat");
    let stat = read(&path)?;
    parse_cpu(&stat).ok_or_else(|| Trouble::new(format!("failed to understand {path}")))
}

/// The name in parentheses may hold anything, so fields count from the last one.
fn parse_cpu(stat: &str) -> Option<Cpu> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let seconds = |at: usize| Some(fields.get(at)?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some(Cpu { own: seconds(11)? + seconds(12)?, children: seconds(13)? + seconds(14)? })
}

/// A number from `/proc/PID/status`, such as `VmRSS` or `VmHWM` (KiB).
pub fn status(pid: u32, name: &str) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    number_after(&read(&path)?, name).ok_or_else(|| Trouble::new(format!("no {name} in {path}")))
}

fn number_after(text: &str, name: &str) -> Option<f64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// What a process's living threads have done so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads {
    /// CPU seconds, to the nanosecond.
    pub cpu: f64,
    /// How often one went to sleep of its own accord: wake-ups.
    pub sleeps: f64,
}

/// Sums over the threads that are alive.
pub fn threads(pid: u32) -> Result<Threads> {
    let mut sum = Threads::default();
    for task in fs::read_dir(format!("/proc/{pid}/task")).doing("list threads")? {
        let task = task.doing("list threads")?.path().display().to_string();
        let schedule = read(&format!("{task}/schedstat"))?;
        let nanos = schedule.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok());
        sum.cpu += nanos.unwrap_or(0.0) / 1e9;
        sum.sleeps +=
            number_after(&read(&format!("{task}/status"))?, "voluntary_ctxt_switches").unwrap_or(0.0);
    }
    Ok(sum)
}

/// CPU seconds that all cores together spent on anything, interrupts included, idling and waiting excluded.
pub fn busy() -> Result<f64> {
    let stat = read("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|ticks| ticks.parse().ok()).collect();
    // user, nice, system, (idle, iowait,) irq, softirq.
    let counted = [0, 1, 2, 5, 6].iter().filter_map(|at| ticks.get(*at));
    Ok(counted.sum::<f64>() / TICKS_PER_SECOND)
}

/// The load average of the last minute.
pub fn load() -> Result<f64> {
    let text = read("/proc/loadavg")?;
    let first = text.split_whitespace().next().and_then(|load| load.parse().ok());
    first.ok_or_else(|| Trouble::new("failed to understand /proc/loadavg"))
}

/// The processor's name, as far as it has one.
pub fn processor() -> String {
    let info = read("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned())
}

/// The kernel's release.
pub fn kernel() -> String {
    read("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_hold_parentheses_and_spaces() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 20 5 20 0 3 0 100 1 1";
        let cpu = parse_cpu(stat).unwrap();
        assert_eq!((cpu.own, cpu.children), (2.0, 0.25));
    }

    #[test]
    fn a_status_number_is_found_by_its_whole_name() {
        let status = "VmRSSx:\t1 kB\nVmRSS:\t  2048 kB\n";
        assert_eq!(number_after(status, "VmRSS"), Some(2048.0));
        assert_eq!(number_after(status, "VmHWM"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = std::process::id();
        assert!(status(pid, "VmRSS").unwrap() > 0.0);
        assert!(cpu(pid).unwrap().own >= 0.0);
        assert!(threads(pid).unwrap().cpu > 0.0);
        assert!(busy().unwrap() > 0.0);
    }
}
