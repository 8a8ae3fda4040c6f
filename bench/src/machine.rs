//! The machine as a reader of figures needs to know it, and who else worked on it meanwhile.

use crate::sizes;
use crate::system_info;
use rustix::thread::sched_getaffinity;
use std::fmt;
use std::fs;
use std::time::Instant;

/// More than this part of a processor, used by others or taken by the hypervisor, is said.
const BUSY_ABOVE: f64 = 0.05;
/// Clock ticks of /proc in a second; the kernel shows 100 to user space on every machine (proc(5)).
const TICKS_PER_S: f64 = 100.0;

/// What was measured on.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    processor: String,
    /// Processors that we may use, by number.
    pub(crate) processors: Vec<usize>,
    memory: u64,
    kernel: String,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> anyhow::Result<Machine> {
        let allowed = sched_getaffinity(None)?;
        Ok(Machine {
            processor: system_info::processor(),
            processors: (0..rustix::thread::CpuSet::MAX_CPU)
                .filter(|&number| allowed.is_set(number))
                .collect(),
            memory: system_info::memory(),
            kernel: system_info::kernel(),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.processors.len();
        let memory = sizes::show(self.memory.div_ceil(1 << 30) << 30);
        let s = if count == 1 { "" } else { "s" };
        write!(f, "{}, {count} processor{s}, {memory}, Linux {}", self.processor, self.kernel)
    }
}

/// Watches what others take of the processors from now on.
#[derive(Debug)]
pub(crate) struct Others {
    start: Instant,
    before: Ticks,
}

/// Processor time so far, in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    /// Of everybody.
    all: f64,
    /// That the hypervisor gave to others.
    stolen: f64,
    /// Of ourselves and the processes that we have waited for.
    ours: f64,
}

impl Others {
    /// Begins.
    pub(crate) fn watch() -> Others {
        Others { start: Instant::now(), before: Ticks::now() }
    }

    /// What is to be said about others, if anything.
    pub(crate) fn remark(&self) -> Option<String> {
        let (now, seconds) = (Ticks::now(), self.start.elapsed().as_secs_f64());
        let share = |ticks: f64| ticks / TICKS_PER_S / seconds;
        let (before, ours) = (self.before, now.ours - self.before.ours);
        let stolen = share(now.stolen - before.stolen);
        let others = share(now.all - before.all - ours);
        remark(others, stolen)
    }
}

/// What is to be said where other processes and the hypervisor had that much of a processor: one line.
fn remark(others: f64, stolen: f64) -> Option<String> {
    let who = [("others used", others), ("the hypervisor took", stolen)].into_iter();
    let told: Vec<String> = who
        .filter(|&(_, share)| share > BUSY_ABOVE)
        .map(|(who, share)| format!("{who} {:.0} %", share * 100.0))
        .collect();
    (!told.is_empty()).then(|| format!("The machine was busy: {} of a processor.", told.join(" and ")))
}

impl Ticks {
    fn now() -> Ticks {
        let all = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ours = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        Ticks::parse(&all, &ours)
    }

    /// Columns by proc(5): user nice system idle iowait irq softirq steal; utime stime cutime cstime are the 12th
    /// and the next three behind the name.
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
    fn this_machine_has_a_processor() {
        let machine = Machine::this().unwrap();
        assert!(!machine.processors.is_empty() && machine.to_string().contains("processor"));
    }

    #[test]
    fn a_remark_is_a_line_that_fits() {
        assert_eq!(remark(BUSY_ABOVE, 0.0), None);
        assert_eq!(
            remark(0.0, 0.5).unwrap(),
            "The machine was busy: the hypervisor took 50 % of a processor."
        );
        let both = remark(25.5, 10.0).unwrap();
        assert!(
            both.contains("others used 2550 % and the hypervisor took 1000 %") && both.len() <= 100,
            "{both}"
        );
    }

    #[test]
    fn ticks_are_read_from_the_right_columns() {
        let all = "cpu  100 20 30 4000 5 6 7 80 0 0\ncpu0 1 2 3\n";
        let ours = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 0";
        let ticks = Ticks::parse(all, ours);
        assert_eq!((ticks.all, ticks.stolen), (163.0, 80.0));
        assert_eq!(ticks.ours, 11.0 + 12.0 + 13.0 + 14.0);
    }
}
