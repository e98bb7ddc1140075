//! Graphics cards that the kernel itself tells of: those of AMD.

use crate::host::Host;

/// A card as its files under `/sys/class/drm` show it. `None` is "not available".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Card {
    /// The number in `card0`.
    pub number: u32,
    pub memory_used: Option<u64>,
    pub memory_total: Option<u64>,
    /// In percent.
    pub busy: Option<u64>,
    /// In degrees Celsius.
    pub temperature: Option<u64>,
    /// Memory errors that could not be corrected, since the driver was loaded.
    pub uncorrected_errors: Option<u64>,
}

/// The cards that tell how much memory they have, by their numbers. Others are not accelerators, or their drivers tell
/// it elsewhere.
pub fn cards(host: &Host) -> Vec<Card> {
    let mut found: Vec<Card> = names(host, "/sys/class/drm")
        .iter()
        .filter_map(|name| name.strip_prefix("card")?.parse().ok())
        .filter_map(|number| card(host, number))
        .collect();
    found.sort_unstable_by_key(|card| card.number);
    found
}

fn card(host: &Host, number: u32) -> Option<Card> {
    let device = format!("/sys/class/drm/card{number}/device");
    let read = |file: &str| host.read(format!("{device}/{file}")).ok();
    let value = |file: &str| read(file)?.trim().parse::<u64>().ok();
    let memory_total = Some(value("mem_info_vram_total")?);
    let sensors = names(host, &format!("{device}/hwmon"));
    let sensor = |name: &String| value(&format!("hwmon/{name}/temp1_input"));
    // `ue: 0`, `ce: 3`
    let errors = read("ras/umc_err_count").and_then(|text| {
        text.lines()
            .find_map(|line| line.strip_prefix("ue:")?.trim().parse().ok())
    });
    Some(Card {
        number,
        memory_used: value("mem_info_vram_used"),
        memory_total,
        busy: value("gpu_busy_percent"),
        // In thousandths.
        temperature: sensors
            .iter()
            .find_map(sensor)
            .map(|thousandths| thousandths / 1000),
        uncorrected_errors: errors,
    })
}

fn names(host: &Host, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(host.path(folder))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_tells_what_it_knows_and_connectors_are_none() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join("sys/class/drm").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let host = Host::recorded(root.path(), [("", ""); 0]);
        assert_eq!(cards(&host), []);
        write("card1/device/mem_info_vram_total", "17163091968\n");
        write("card1/device/mem_info_vram_used", "1073741824\n");
        write("card1/device/gpu_busy_percent", "97\n");
        write("card1/device/hwmon/hwmon3/temp1_input", "71000\n");
        write("card1/device/ras/umc_err_count", "ue: 2\nce: 40\n");
        write("card1-DP-1/device/mem_info_vram_total", "1\n");
        write("card10/device/mem_info_vram_total", "512\n");
        write("card2/device/vendor", "0x8086\n");
        let whole = Card {
            number: 1,
            memory_used: Some(1 << 30),
            memory_total: Some(17_163_091_968),
            busy: Some(97),
            temperature: Some(71),
            uncorrected_errors: Some(2),
        };
        let bare = Card {
            number: 10,
            memory_total: Some(512),
            ..Card::default()
        };
        assert_eq!(cards(&host), [whole, bare]);
    }
}
