//! What Slurm allotted, from the variables it sets for each job (see "OUTPUT ENVIRONMENT VARIABLES" in
//! `man sbatch`): the same as `--mem`, `--mem-per-cpu` and `--mem-per-gpu`, in binary megabytes.

use crate::budget::{Bound, BoundKind, Limit};
use crate::host::Host;

/// Adds the bounds that Slurm's variables tell, or one that says there is no Slurm.
pub(crate) fn bounds(host: &Host, bounds: &mut Vec<Bound>) {
    let before = bounds.len();
    if let Some(memory) = host.env("SLURM_MEM_PER_NODE") {
        bounds.push(Bound::new(
            BoundKind::Slurm,
            "Slurm SLURM_MEM_PER_NODE",
            times(memory, Some(1), ""),
        ));
    }
    for (variable, counts) in [
        (
            "SLURM_MEM_PER_CPU",
            ["SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"],
        ),
        ("SLURM_MEM_PER_GPU", ["SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"]),
    ] {
        let Some(memory) = host.env(variable) else {
            continue;
        };
        let (name, count) = counts
            .iter()
            .find_map(|name| Some((*name, least_count(host.env(name)?)?)))
            .map_or((counts[0], None), |(name, count)| (name, Some(count)));
        let name = format!("Slurm {variable} × {name}");
        bounds.push(Bound::new(
            BoundKind::Slurm,
            name,
            times(memory, count, counts[0]),
        ));
    }
    if bounds.len() == before {
        let reason = match host.env("SLURM_JOB_ID") {
            Some(_) => "the job was given no memory size",
            None => "not in a Slurm job",
        };
        bounds.push(Bound::new(
            BoundKind::Slurm,
            "Slurm",
            Limit::Unavailable(reason.to_owned()),
        ));
    }
}

fn times(memory: &str, count: Option<u64>, counted_by: &str) -> Limit {
    let Some(bytes) = megabytes(memory) else {
        return Limit::Unavailable(format!("`{memory}` is not a Slurm memory size"));
    };
    // `--mem=0` asks for all of the node.
    if bytes == 0 {
        return Limit::Unlimited;
    }
    match count {
        None => Limit::Unavailable(format!("no usable {counted_by}")),
        Some(count) => bytes.checked_mul(count).map_or(Limit::Unlimited, Limit::Bytes),
    }
}

/// `4000`, `4000M`, `4G`: mebibytes unless it says otherwise.
fn megabytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, shift) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 20),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `8`, `72(x2),36` (per node of the job) or `volta:3,kepler:5` (per kind): a node has at least the smallest.
fn least_count(text: &str) -> Option<u64> {
    text.split(',')
        .map(|part| {
            let part = part.split_once('(').map_or(part, |(count, _)| count);
            part.rsplit_once(':')
                .map_or(part, |(_, count)| count)
                .trim()
                .parse()
                .ok()
                .filter(|count| *count > 0)
        })
        .min()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(env: &[(&str, &str)], expected: &str) {
        let mut found = Vec::new();
        bounds(&Host::recorded("/nonexistent", env.iter().copied()), &mut found);
        let found: Vec<String> = found.iter().map(Bound::to_string).collect();
        assert_eq!(found.join("\n"), expected);
    }

    #[test]
    fn the_variables_are_read_as_slurm_writes_them() {
        check(&[], "Slurm: unavailable: not in a Slurm job");
        check(
            &[("SLURM_JOB_ID", "7")],
            "Slurm: unavailable: the job was given no memory size",
        );
        check(
            &[("SLURM_MEM_PER_NODE", "4000")],
            "Slurm SLURM_MEM_PER_NODE: 4.19 GB",
        );
        check(
            &[("SLURM_MEM_PER_NODE", "4G")],
            "Slurm SLURM_MEM_PER_NODE: 4.29 GB",
        );
        check(
            &[("SLURM_MEM_PER_NODE", "0")],
            "Slurm SLURM_MEM_PER_NODE: unlimited",
        );
        check(
            &[("SLURM_MEM_PER_NODE", "many")],
            "Slurm SLURM_MEM_PER_NODE: unavailable: `many` is not a Slurm memory size",
        );
        check(
            &[("SLURM_MEM_PER_CPU", "1024"), ("SLURM_CPUS_ON_NODE", "4")],
            "Slurm SLURM_MEM_PER_CPU × SLURM_CPUS_ON_NODE: 4.29 GB",
        );
        check(
            &[
                ("SLURM_MEM_PER_CPU", "1000"),
                ("SLURM_JOB_CPUS_PER_NODE", "8(x2),4"),
            ],
            "Slurm SLURM_MEM_PER_CPU × SLURM_JOB_CPUS_PER_NODE: 4.19 GB",
        );
        check(
            &[("SLURM_MEM_PER_CPU", "1000")],
            "Slurm SLURM_MEM_PER_CPU × SLURM_CPUS_ON_NODE: unavailable: no usable SLURM_CPUS_ON_NODE",
        );
        check(
            &[("SLURM_MEM_PER_GPU", "1000"), ("SLURM_GPUS_ON_NODE", "2")],
            "Slurm SLURM_MEM_PER_GPU × SLURM_GPUS_ON_NODE: 2.1 GB",
        );
        check(
            &[("SLURM_MEM_PER_GPU", "1000"), ("SLURM_GPUS_PER_NODE", "volta:3")],
            "Slurm SLURM_MEM_PER_GPU × SLURM_GPUS_PER_NODE: 3.15 GB",
        );
    }
}
