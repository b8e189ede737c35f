//! What the kernel says of a machine in files of /proc and /sys, as far as both the controller and a worker ask.

use std::fs;

/// A file's text; `None` where it cannot be read.
#[must_use]
pub fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The same without the end of its line.
#[must_use]
pub fn line(path: &str) -> Option<String> {
    text(path).map(|text| text.trim().to_owned())
}

/// The value on the first line `NAME : VALUE` (`/proc/cpuinfo`, `/proc/meminfo`).
#[must_use]
pub fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Host name.
#[must_use]
pub fn hostname() -> Option<String> {
    line("/proc/sys/kernel/hostname")
}

/// The clock source that the kernel uses.
#[must_use]
pub fn clock_source() -> Option<String> {
    line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Model name of the CPU; some architectures print none.
#[must_use]
pub fn cpu_model(cpuinfo: &str) -> Option<String> {
    field(cpuinfo, "model name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.00GHz\nmodel name\t: other\n";
        assert_eq!(cpu_model(text).as_deref(), Some("Some CPU @ 2.00GHz"));
        assert_eq!(field(text, "name"), None);
        assert_eq!(field("no colon\n", "no colon"), None);
        assert_eq!(line("/nonexistent"), None);
    }
}
