//! Text output of the `bench` command.

use crate::bench::{BenchReport, Purpose, Rates};
use crate::wire::{BenchStressRecord, FaultSearch, FaultSearchSummary, FaultsRecord, GrowthRecord};
use crate::write::number::plural;

/// Formats the rates of a device.
pub fn format_rates(report: &BenchReport) -> String {
    let mut text = format!("{} ({}), preset {}\n\n", report.device, report.driver.trim(), report.preset);
    text += &format!("{:28}{:>14}{:>16}{:>14}\n", "millions a second", "instances", "interleaved", "weak");
    let mut row = |name: &str, rates: &Rates| {
        let [instances, interleaved, weak] =
            [rates.instances_per_second, rates.interleaved_per_second, rates.weak_sb_per_second]
                .map(|rate| rate / 1e6);
        text += &format!("{name:28}{instances:>14.3}{interleaved:>16.4}{weak:>14.4}\n");
    };
    let headline = report.runs.iter().find(|run| run.purpose == Purpose::Headline);
    let headline = headline.map_or("", |run| run.test.as_str());
    row(&format!("{headline}, median"), &report.rates);
    row("classic scheme", &report.classic.rates);
    row("two native threads", &report.calibration.rates);
    for run in report.runs.iter().filter(|run| run.error.is_none() && run.purpose != Purpose::AtOnce) {
        row(&format!("{} {}", run.test, run.preset), &run.counts.rates());
    }
    let at_once: Vec<_> = report.runs.iter().filter(|run| run.purpose == Purpose::AtOnce).collect();
    let seen = at_once.iter().filter(|run| run.counts.weak > 0).count();
    text += &format!("\na weak outcome within 10 ms in {seen} of {} runs\n", at_once.len());
    for run in &report.runs {
        if let Some(error) = &run.error {
            text += &format!("{}: {error}\n", run.test);
        }
    }
    text + &not_executed_note(report.not_executed())
}

/// Returns the note on instances that the device did not execute; empty if it executed all.
fn not_executed_note(not_executed: u64) -> String {
    if not_executed == 0 {
        return String::new();
    }
    format!("\nnot executed: {}, which count in no rate\n", plural(not_executed, "instance"))
}

/// Formats time and memory by number of instances.
pub fn format_growth(growth: &GrowthRecord) -> String {
    let GrowthRecord { device, preset, test, rows, .. } = growth;
    let mut text = format!("{test} on {device}, preset {preset}\n\n");
    text += &format!("{:>16}{:>12}{:>16}{:>16}\n", "instances", "seconds", "millions a s", "peak memory");
    for row in rows {
        let peak = row.peak_memory_bytes.map_or_else(String::new, |bytes| format!("{} MiB", bytes >> 20));
        let rate = row.instances_per_second / 1e6;
        text += &format!("{:>16}{:>12.3}{rate:>16.2}{peak:>16}\n", row.instances, row.seconds);
    }
    text + &not_executed_note(growth.not_executed())
}

/// Formats a comparison of stress environments.
pub fn format_environments(report: &BenchStressRecord) -> String {
    let BenchStressRecord { device, driver, tests, mutants, rounds, trial_seconds, seed, .. } = report;
    let mut text = format!(
        "{device} ({}): {tests} relaxed tests, {mutants} of them mutants, {rounds} × {trial_seconds:.3} s in each environment, seed {seed}\n\n",
        driver.trim()
    );
    text += &format!(
        "{:14}{:>8}{:>13}{:>13}{:>12}{:>8}{:>12}{:>13}{:>8}{:>13}{:>8}\n",
        "a second",
        "seconds",
        "instances",
        "interleaved",
        "weak",
        "ratio",
        "killed",
        "deaths",
        "ratio",
        "typical",
        "ratio"
    );
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
    for environment in &report.environments {
        text += &format!(
            "{:14}{:>8.1}{:>13.0}{:>13.0}{:>12.0}{:>8}{:>12}{:>13.1}{:>8}{:>13.2}{:>8}\n",
            environment.name,
            environment.seconds,
            environment.instances_per_second,
            environment.interleaved_per_second,
            environment.weak_per_second,
            ratio(environment.weak_ratio),
            format!("{} of {mutants}", environment.killed),
            environment.deaths_per_second,
            ratio(environment.deaths_ratio),
            environment.typical_deaths_per_second,
            ratio(environment.typical_ratio),
        );
    }
    text += "\nDeaths of each mutant a second:\n";
    for row in report.rows.iter().filter(|row| !row.mutant_of.is_empty()) {
        text += &format!("{:40}", row.test);
        for cell in &row.environments {
            text += &match (&cell.error, cell.counts.instances) {
                (Some(_), 0) => format!("{:>14}", "-"),
                _ => format!("{:>14.1}", cell.counts.per_second(cell.deaths)),
            };
        }
        text += "\n";
    }
    for row in &report.rows {
        for (cell, environment) in row.environments.iter().zip(&report.environments) {
            if let Some(error) = &cell.error {
                text += &format!("{} in {}: {error}\n", row.test, environment.name);
            }
        }
    }
    text + &not_executed_note(report.not_executed())
}

/// Formats the search for one fault on one line.
pub fn format_fault(fault: &FaultSearchSummary) -> String {
    let mut sorted: Vec<&FaultSearch> = fault.seeds.iter().collect();
    sorted.sort_by(|left, right| left.seconds.total_cmp(&right.seconds));
    let Some(median) = sorted.get(sorted.len() / 2) else { return String::new() };
    let by = median.test.as_deref().unwrap_or("-");
    format!(
        "{:34} {:12} {:6} {:>9} instances {:>7.3} s  {by}\n",
        fault.fault,
        fault.expect,
        if fault.found { "yes" } else { "no" },
        median.instances,
        median.seconds
    )
}

/// Formats the totals over all faults on one line.
pub fn format_fault_totals(record: &FaultsRecord) -> String {
    let visible = record.faults.iter().filter(|fault| fault.expect != "invisible").count();
    format!(
        "{visible} of {} faults were detected, {} led to something else; {} false alarms in {} instances\n",
        record.faults.len(),
        record.missed.len(),
        record.false_alarms.len(),
        record.sound_instances
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{BENCH_SCHEMA, Baseline, BenchTrial, Counts};
    use crate::wire::GrowthRow;

    #[test]
    fn unexecuted_instances_are_reported() {
        let run = |not_executed| BenchTrial {
            test: "sb/SB+rlx-rlx".to_owned(),
            preset: "gpu".to_owned(),
            purpose: Purpose::Headline,
            seed: 5,
            asked_seconds: 1.0,
            counts: Counts { instances: 10, not_executed, seconds: 1.0, ..Counts::default() },
            outcomes: Vec::new(),
            error: None,
        };
        let report = |not_executed: [u64; 2]| BenchReport {
            schema: BENCH_SCHEMA.to_owned(),
            device: "a".to_owned(),
            driver: "b".to_owned(),
            rates: Rates::default(),
            preset: "gpu".to_owned(),
            throughput_instances_per_second: 0.0,
            runs: not_executed.map(run).to_vec(),
            classic: Baseline::new("classic", Vec::new()),
            calibration: Baseline::new("native", Vec::new()),
            seconds: 2.0,
        };
        let note = |number: &str| format!("\nnot executed: {number}, which count in no rate\n");
        assert!(format_rates(&report([1200, 34])).ends_with(&note("1,234 instances")));
        assert!(!format_rates(&report([0, 0])).contains("not executed"));
        let row = |not_executed| GrowthRow {
            instances: 10,
            not_executed,
            seconds: 1.0,
            instances_per_second: 10.0,
            peak_memory_bytes: None,
        };
        let growth = GrowthRecord {
            schema: "s",
            device: "a".to_owned(),
            preset: "gpu".to_owned(),
            test: "t",
            rows: vec![row(0), row(5)],
        };
        assert!(format_growth(&growth).ends_with(&note("5 instances")));
    }
}
