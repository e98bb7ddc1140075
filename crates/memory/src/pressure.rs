//! Pressure stall information: the share of time that tasks waited for memory, the processor or the disk.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// What tasks waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Memory,
    Cpu,
    Io,
}

impl Resource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Resource::Memory => "memory",
            Resource::Cpu => "cpu",
            Resource::Io => "io",
        }
    }
}

/// Percentages of wall time over the last 10, 60 and 300 seconds, and microseconds in all: `some` when at
/// least one task waited, `full` when none could go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    pub some_avg10: f64,
    pub some_avg60: f64,
    pub some_avg300: f64,
    pub some_total_us: u64,
    pub full_avg10: f64,
    pub full_avg60: f64,
    pub full_avg300: f64,
    pub full_total_us: u64,
}

impl Pressure {
    /// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and `full` likewise. `None` for anything else. The
    /// `full` line of the processor came with Linux 5.13; where it is missing, it stays zero, which it is.
    pub(crate) fn parse(text: &str) -> Option<Pressure> {
        let mut pressure = Pressure::default();
        let mut seen = false;
        for line in text.lines() {
            let (kind, fields) = line.split_once(' ')?;
            let (avg10, avg60, avg300, total) = match kind {
                "some" => (
                    &mut pressure.some_avg10,
                    &mut pressure.some_avg60,
                    &mut pressure.some_avg300,
                    &mut pressure.some_total_us,
                ),
                "full" => (
                    &mut pressure.full_avg10,
                    &mut pressure.full_avg60,
                    &mut pressure.full_avg300,
                    &mut pressure.full_total_us,
                ),
                _ => continue,
            };
            for field in fields.split_whitespace() {
                match field.split_once('=')? {
                    ("avg10", value) => *avg10 = value.parse().ok()?,
                    ("avg60", value) => *avg60 = value.parse().ok()?,
                    ("avg300", value) => *avg300 = value.parse().ok()?,
                    ("total", value) => *total = value.parse().ok()?,
                    _ => {}
                }
            }
            seen |= kind == "some";
        }
        seen.then_some(pressure)
    }
}

/// The whole machine's memory pressure; `None` where the kernel does not tell.
pub fn memory_pressure(host: &Host) -> Option<Pressure> {
    pressure(host, Resource::Memory)
}

/// The whole machine's pressure on `resource`.
pub fn pressure(host: &Host, resource: Resource) -> Option<Pressure> {
    Pressure::parse(&host.read(format!("proc/pressure/{}", resource.name())).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_lines_are_read() {
        let text = "some avg10=1.50 avg60=0.25 avg300=0.05 total=1234567\nfull avg10=1.00 avg60=0.20 avg300=0.01 total=765432\n";
        let pressure = Pressure::parse(text).expect("two good lines");
        assert_eq!((pressure.some_avg10, pressure.full_avg60), (1.5, 0.2));
        assert_eq!(
            (pressure.some_total_us, pressure.full_total_us),
            (1_234_567, 765_432)
        );
        assert!(Pressure::parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=9").is_some());
        for junk in [
            "",
            "\n",
            "some",
            "some avg10=x",
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=9",
        ] {
            assert_eq!(Pressure::parse(junk), None, "{junk}");
        }
    }
}
