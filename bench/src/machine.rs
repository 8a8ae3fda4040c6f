//! The properties of the machine that a reader of figures needs, and which other work the machine did during the
//! measurement.

use crate::sizes;
use std::fmt;
use std::fs;
use std::time::Instant;

/// Other processes are not mentioned if they used at most this share of a processor.
const BUSY_ABOVE: f64 = 0.05;
/// The unit of time in /proc.
const TICKS_PER_S: f64 = 100.0;

/// The properties of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    processor: String,
    /// The processors that this process may use.
    pub(crate) processors: Vec<usize>,
    memory: u64,
    kernel: String,
}

impl Machine {
    pub(crate) fn this() -> anyhow::Result<Machine> {
        let allowed = rustix::thread::sched_getaffinity(None)?;
        let all = 0..rustix::thread::CpuSet::MAX_CPU;
        let kib = field("/proc/meminfo", "MemTotal").unwrap_or_default();
        Ok(Machine {
            processor: processor(),
            processors: all.filter(|&number| allowed.is_set(number)).collect(),
            memory: kib.split(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024,
            kernel: kernel(),
        })
    }
}

/// Returns the model name that the processor reports.
pub(crate) fn processor() -> String {
    field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// Returns the version of the kernel.
pub(crate) fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim_start_matches([' ', '\t', ':']).trim().to_string())
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.processors.len();
        let memory = sizes::show(self.memory.div_ceil(1 << 30) << 30);
        let s = if count == 1 { "" } else { "s" };
        write!(f, "{}, {count} processor{s}, {memory}, Linux {}", self.processor, self.kernel)
    }
}

/// Measures what other processes use of the machine while figures are measured.
#[derive(Debug)]
pub(crate) struct Others {
    start: Instant,
    before: Ticks,
}

/// Processor time of all processes, of other guests of the hypervisor, and of this process including its descendants
/// that have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    all: f64,
    stolen: f64,
    ours: f64,
}

impl Others {
    pub(crate) fn watch() -> Others {
        Others { start: Instant::now(), before: Ticks::now() }
    }

    /// Returns a remark about other work, if there was enough to mention.
    pub(crate) fn remark(&self) -> Option<String> {
        let (now, before) = (Ticks::now(), self.before);
        let share = |ticks: f64| ticks / TICKS_PER_S / self.start.elapsed().as_secs_f64();
        remark(share(now.all - before.all - (now.ours - before.ours)), share(now.stolen - before.stolen))
    }
}

fn remark(others: f64, stolen: f64) -> Option<String> {
    let said: Vec<String> = [("others used", others), ("the hypervisor took", stolen)]
        .into_iter()
        .filter(|&(_, share)| share > BUSY_ABOVE)
        .map(|(who, share)| format!("{who} {:.0} %", share * 100.0))
        .collect();
    (!said.is_empty()).then(|| format!("The machine was busy: {} of a processor.", said.join(" and ")))
}

impl Ticks {
    fn now() -> Ticks {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        Ticks::parse(&read("/proc/stat"), &read("/proc/self/stat"))
    }

    fn parse(all: &str, ours: &str) -> Ticks {
        let numbers = |text: &str| -> Vec<f64> {
            text.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect()
        };
        let columns = numbers(all.lines().next().unwrap_or_default().trim_start_matches("cpu"));
        let column = |index: usize| columns.get(index).copied().unwrap_or(0.0);
        let fields = numbers(ours.rsplit_once(')').map_or("", |(_, rest)| rest));
        Ticks {
            all: [0, 1, 2, 5, 6].into_iter().map(column).sum(),
            stolen: column(7),
            ours: fields.iter().skip(11).take(4).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_remarked() {
        assert!(Machine::this().unwrap().to_string().contains("processor"));
        assert_eq!(remark(BUSY_ABOVE, 0.0), None);
        let both = remark(25.5, 10.0).unwrap();
        assert!(both.contains("others used 2550 % and the hypervisor took 1000 %") && both.len() <= 100);
        let all = "cpu  100 20 30 4000 5 6 7 80 0 0\ncpu0 1 2 3\n";
        let ticks = Ticks::parse(all, "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 0");
        assert_eq!((ticks.all, ticks.stolen, ticks.ours), (163.0, 80.0, 11.0 + 12.0 + 13.0 + 14.0));
    }
}
