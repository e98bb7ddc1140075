//! A limit of the address space that a command sets for itself: `prlimit --as=…`, `ulimit -v` of a shell.

/// In bytes. `None` where it sets none, or none that can be read.
pub(super) fn of_address_space(command: &[String]) -> Option<u64> {
    let program = command.first()?.rsplit('/').next()?;
    match program {
        "prlimit" => prlimit(&command[1..]),
        "sh" | "bash" | "dash" | "zsh" | "ksh" => {
            let line = command.iter().skip_while(|word| !is_script_option(word)).nth(1)?;
            ulimit(line)
        }
        // `env`, `nice`, `timeout 60`, …: it comes later, if at all.
        _ => of_address_space(&command[1..]),
    }
}

/// `-c`, `-lc`, `-ec`.
fn is_script_option(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    letters.ends_with('c') && letters.chars().all(|c| c.is_ascii_alphabetic())
}

/// `--as=104857600:`, `--as=1G:2G`, `-v104857600`; in bytes, the soft limit first.
fn prlimit(words: &[String]) -> Option<u64> {
    let options = words.iter().take_while(|word| word.starts_with('-'));
    options
        .filter_map(|word| word.strip_prefix("--as=").or(word.strip_prefix("-v")))
        .find_map(|limits| limits.trim_start_matches('=').split(':').next()?.parse().ok())
}

/// `ulimit -v 1048576`, also with `-S` or `-H`; in kibibytes.
fn ulimit(line: &str) -> Option<u64> {
    let mut words = line
        .split([' ', '\t', ';', '&', '\n'])
        .filter(|word| !word.is_empty());
    while words.find(|word| *word == "ulimit").is_some() {
        let mut options = words.clone().take(3);
        let asked = options.any(|word| word.starts_with('-') && word.ends_with('v'));
        if asked && let Some(limit) = options.next().and_then(|word| word.parse::<u64>().ok()) {
            return Some(limit.saturating_mul(1024));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_commands() {
        for (command, expected) in [
            (&["prlimit", "--as=104857600:", "./a"][..], Some(104_857_600)),
            (
                &["env", "A=1", "prlimit", "--nofile=64", "--as=5:6", "./a"],
                Some(5),
            ),
            (&["prlimit", "-v77", "./a"], Some(77)),
            (&["prlimit", "--nofile=64", "./a", "--as=5"], None),
            (&["prlimit", "--as=unlimited", "./a"], None),
            (&["bash", "-c", "ulimit -v 1024; ./a"], Some(1 << 20)),
            (
                &["nice", "sh", "-ec", "ulimit -n 64 && ulimit -S -v 2048 && ./a"],
                Some(2 << 20),
            ),
            (&["sh", "-c", "ulimit -v unlimited; ./a"], None),
            (&["sh", "-c", "ulimit -n 64; ./a -v 5"], None),
            (&["python", "train.py"], None),
            (&["bash", "run.sh"], None),
            (&[], None),
        ] {
            let command: Vec<String> = command.iter().map(|word| (*word).into()).collect();
            assert_eq!(of_address_space(&command), expected, "{command:?}");
        }
    }
}
