//! Text output of the `race` command.

use super::change::describe_placed_change;
use crate::escape::escape_block;
use crate::wire::{
    CoverageLimit, CoveredGrid, CoveredSchedules, FindingPlace, FindingRecord, NeededRecord, RaceCoverage,
    RaceLine, RaceVerdict, ScheduleReason,
};

/// Formats an entry point with its findings. Control characters in names of the module are escaped.
pub fn format_race(line: &RaceLine) -> String {
    let findings = line.findings.iter().map(|finding| format_finding(line.verdict, finding));
    let text =
        format_head(line) + &format_needs(&line.needs) + &findings.collect::<String>() + &format_lints(line);
    escape_block(&text).into_owned()
}

/// Formats the verdict of an entry point, with coverage.
pub fn format_head(line: &RaceLine) -> String {
    let entry = if line.entry.is_empty() { String::new() } else { format!(" `{}`", line.entry) };
    let mut text = format!("{}{entry}: {}\n", line.file, headline(line));
    for note in describe_proof(line) {
        text += &format!("  {note}\n");
    }
    if let Some(coverage) = describe_coverage(line) {
        let lead = if line.proof.is_some() { "executed with" } else { "for" };
        text += &format!("  {lead} {coverage}\n");
    }
    if !line.race_free_executions.is_empty() {
        let options: Vec<String> =
            line.race_free_executions.iter().map(|name| format!("`--hlsl-execution {name}`")).collect();
        text += &format!("  race-free for these inputs by {}\n", options.join(" and by "));
    }
    if let Some(why) = &line.why {
        text += &format!("  {why}\n");
    }
    if let Some(element) = &line.order_dependent {
        text += &format!("  order-dependent: {element}\n");
    }
    text
}

/// A finding that inputs decide which no option supplies, with these inputs.
#[derive(Clone, Debug)]
pub struct OpenFinding<'a> {
    /// The finding.
    pub finding: &'a FindingRecord,
    needs: Vec<&'a NeededRecord>,
}

impl OpenFinding<'_> {
    /// Describes what the inputs decide.
    pub fn describe(&self) -> String {
        format!("{} for some inputs: {}", self.finding.kind, self.finding.message)
    }

    /// Describes each input, with the option to copy.
    pub fn describe_options(&self) -> impl Iterator<Item = String> {
        self.needs.iter().map(|NeededRecord { name, value, option, .. }| {
            format!("`{name}` is not given; assumed {value}: supply it with {option}")
        })
    }
}

/// Returns the findings that inputs decide, each with all of its inputs.
pub fn open_findings(needs: &[NeededRecord]) -> Vec<OpenFinding<'_>> {
    let mut all: Vec<OpenFinding<'_>> = Vec::new();
    for needed in needs {
        let Some(finding) = &needed.finding else { continue };
        match all.iter_mut().find(|known| known.finding == finding) {
            Some(known) => known.needs.push(needed),
            None => all.push(OpenFinding { finding, needs: vec![needed] }),
        }
    }
    all
}

/// Formats the inputs that an answer needs: those that decide findings come first.
pub fn format_needs(needs: &[NeededRecord]) -> String {
    let others = needs.iter().filter(|needed| needed.finding.is_none());
    let others = others.map(|needed| format!("  {}\n", describe_need(needed)));
    let open = open_findings(needs);
    open.iter().map(format_open_finding).chain(others).collect()
}

/// Formats a finding that inputs decide, with its places and the options to copy.
pub fn format_open_finding(open: &OpenFinding<'_>) -> String {
    let options = open.describe_options().map(|option| format!("    {option}\n"));
    format!("  {}\n{}{}", open.describe(), format_places(&open.finding.at), options.collect::<String>())
}

/// Formats a finding of an entry point with this verdict, with its places and fixes.
pub fn format_finding(verdict: RaceVerdict, finding: &FindingRecord) -> String {
    let label = if is_of_equal_stores(finding) { "race of equal stores" } else { &finding.kind };
    let mut text = format!("  {label}: {}\n{}", finding.message, format_places(&finding.at));
    for (number, change) in finding.changes().iter().enumerate() {
        let lead = match (number, verdict) {
            (0, RaceVerdict::Clean) => "workaround",
            (0, _) => "fix",
            _ => "and",
        };
        text += &format!("    {lead} {}\n", describe_placed_change(change));
    }
    text
}

/// Names right code for a race without a fix, by the form of the race; `None` for other findings.
///
/// Invocations communicate by atomics if the order of these changes what is executed.
pub fn pattern_hint(finding: &FindingRecord, coverage: &RaceCoverage) -> Option<String> {
    if finding.kind != "race" || !finding.changes().is_empty() {
        return None;
    }
    let [one, other] = &finding.at[..] else { return None };
    let is_write = |place: &FindingPlace| place.access.as_deref() == Some("write");
    let communicates = coverage.schedules.as_ref().is_some_and(|schedules| schedules.explored > 1);
    let advice = match (is_write(one) && is_write(other), one.line == other.line, communicates) {
        (true, ..) => {
            "for several writers of one element, `vk-litmus patterns` has histogram, hash-insert and once"
        }
        (_, true, _) => {
            "for an element that many invocations change, `vk-litmus patterns` has histogram and tree-reduction"
        }
        (.., true) => {
            "for invocations that communicate, `vk-litmus patterns` has decoupled-look-back, last-block and publish-flag"
        }
        (.., false) => "write to a second buffer or image, or in a second dispatch, instead of in place",
    };
    Some(format!("no fix found: {advice}"))
}

/// Formats the findings of lint rules.
pub fn format_lints(line: &RaceLine) -> String {
    let format =
        |lint: &FindingRecord| format!("  {}: {}\n{}", lint.kind, lint.message, format_places(&lint.at));
    line.lints.iter().map(format).collect()
}

/// Formats the positions of a finding, one per line.
pub fn format_places(at: &[FindingPlace]) -> String {
    let line = |place: &FindingPlace| {
        let access = place.access.as_deref().unwrap_or("at");
        let number = place.line.map_or(String::new(), |line| format!(":{line}"));
        let code = place.instruction.as_ref().map_or(String::new(), |code| format!(", {code}"));
        format!("    {access} {}{number}{code}\n", place.file.as_deref().unwrap_or(""))
    };
    at.iter().map(line).collect()
}

/// Describes the conditions and assumptions of a proof, or the first reason why there is none.
pub fn describe_proof(line: &RaceLine) -> Vec<String> {
    if let Some(proof) = &line.proof {
        let mut notes = Vec::new();
        if !proof.counterexample.is_empty() {
            notes.push(format!("not clean with {}", proof.counterexample.join(", ")));
        }
        if !proof.assumptions.is_empty() {
            notes.push(format!("assumed: {}", proof.assumptions.join("; ")));
        }
        return notes;
    }
    let Some(place) = line.unproved.first() else { return Vec::new() };
    let file = place.file.as_deref().unwrap_or(&line.file);
    let number = place.line.map_or_else(String::new, |number| format!("{number}:"));
    let mut notes = vec![format!("{file}:{number} not proved for every input: {}", place.reason)];
    if !line.counterexample.is_empty() {
        notes.push(format!("not clean with {}", line.counterexample.join(", ")));
    }
    notes
}

/// Returns true for a race of two stores of one value, which does not depend on inputs.
fn is_of_equal_stores(finding: &FindingRecord) -> bool {
    finding.cause.as_deref() == Some("equal-stores")
}

/// Returns the verdict; without a race, the kinds of the findings.
pub fn headline(line: &RaceLine) -> String {
    if let Some(proof) = line.proof.as_ref().filter(|_| line.verdict == RaceVerdict::Clean) {
        let names = ["X", "Y", "Z"].into_iter().zip(proof.grid);
        let grid: Vec<String> =
            names.map(|(name, count)| count.map_or(name.to_owned(), |count| count.to_string())).collect();
        let grid = if proof.grid == [None; 3] { String::new() } else { format!(" {}", grid.join(",")) };
        let condition = if proof.conditions.is_empty() { "" } else { " if " };
        return format!("clean for every input and grid{grid}{condition}{}", proof.conditions.join(" and "));
    }
    if let (Some(RaceVerdict::Clean), Some(RaceVerdict::Racy), Some(language)) =
        (line.language_verdict, line.module_verdict, &line.language)
    {
        let compiler = line.compiler.as_deref().unwrap_or("the compiler");
        return format!("race-free in {language}; racy in the module that {compiler} made");
    }
    if line.verdict == RaceVerdict::Racy
        && !line.findings.is_empty()
        && line.findings.iter().all(is_of_equal_stores)
    {
        return format!("{} (stores of one value)", line.verdict);
    }
    let races = ["race", "lockstep", "unpublished-read"];
    if line.verdict != RaceVerdict::Racy || line.findings.iter().any(|found| races.contains(&&*found.kind)) {
        return line.verdict.to_string();
    }
    let mut kinds: Vec<String> = Vec::new();
    for found in &line.findings {
        let kind = match found.cause.as_deref() {
            Some("division-by-zero") => "division by zero".to_owned(),
            _ => found.kind.replace('-', " "),
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() { line.verdict.to_string() } else { kinds.join(", ") }
}

/// Formats what a verdict covers; `None` if the kernel was refused.
pub fn describe_coverage(line: &RaceLine) -> Option<String> {
    let coverage = &line.coverage;
    let (grid, schedules) = (coverage.grid.as_ref()?, coverage.schedules.as_ref()?);
    let mut text = "these inputs".to_owned();
    let mut chosen = coverage.inputs.iter().map(|inputs| inputs.join(", "));
    if let Some(first) = chosen.next() {
        let others = chosen.map(|other| format!("also {other}"));
        let all: Vec<String> =
            Some(first).filter(|first| !first.is_empty()).into_iter().chain(others).collect();
        text += &format!(" (chosen by the tool: {})", all.join("; "));
    }
    text += &match &schedules.model {
        Some(model) => {
            let count = schedules.executions.map_or(String::new(), |count| format!(" ({count})"));
            format!(
                ", {} invocations, every execution{count} that `{model}` allows without values out of thin air",
                grid.invocations
            )
        }
        None => {
            let invocations = describe_invocations(grid, line.subgroup_size);
            format!(", {invocations}, loops not bounded, {}", describe_schedules(schedules))
        }
    };
    // A need has the finding of a wider grid with its places.
    let is_needed = |limit: &CoverageLimit| {
        let mut findings = line.needs.iter().filter_map(|need| need.finding.as_ref());
        matches!(limit, CoverageLimit::WiderGrid { message, .. } if findings.any(|found| found.message == *message))
    };
    for limit in coverage.limits.iter().filter(|limit| !is_needed(limit)) {
        text += &format!("; {}", describe_limit(limit));
    }
    Some(text)
}

fn describe_invocations(grid: &CoveredGrid, subgroup_size: u32) -> String {
    if let Some(words) = &grid.invocations_of_stage {
        return words.clone();
    }
    let plural = if grid.workgroups == 1 { "" } else { "s" };
    let running = grid.running.map_or(String::new(), |count| format!("{count} of "));
    let CoveredGrid { workgroups, workgroup_size, .. } = grid;
    format!("{running}{workgroups} workgroup{plural} of {workgroup_size}, subgroups of {subgroup_size}")
}

fn describe_schedules(schedules: &CoveredSchedules) -> String {
    let why = match schedules.reason {
        None => return "all schedules".to_owned(),
        Some(ScheduleReason::PartialSubgroups) => {
            return "all schedules, with subgroup operations in branches executed together by the lanes that reach \
                    them"
                .to_owned();
        }
        Some(ScheduleReason::Interlock) => "interlock sections may execute in any order",
        Some(ScheduleReason::Atomics) => "atomics affect control flow or ordering",
        Some(ScheduleReason::Limit) => "a limit ended the search",
    };
    let plural = if schedules.explored == 1 { "" } else { "s" };
    format!("{} schedule{plural} explored, because {why}", schedules.explored)
}

/// Formats a limit of a verdict.
pub fn describe_limit(limit: &CoverageLimit) -> String {
    match limit {
        CoverageLimit::Note { text } => text.clone(),
        CoverageLimit::Unreached { lines } => format!("not reached: {lines}"),
        CoverageLimit::WiderGrid { grid, message } => {
            format!("the grid is not given: with {grid}: {message}")
        }
        CoverageLimit::OneWorkgroup => "the grid is not given, and every workgroup does the same".to_owned(),
        CoverageLimit::GridSearchCutOff => {
            "the search for grids in which positions coincide was cut off".to_owned()
        }
    }
}

/// Formats an input that no option supplies as a sentence.
pub fn describe_need(needed: &NeededRecord) -> String {
    let NeededRecord { name, value, option, lines, .. } = needed;
    let what = match lines.as_str() {
        "" => "a finding depends on it".to_owned(),
        lines => format!("{lines} not reached"),
    };
    format!("`{name}` is not given; assumed {value}, {what}: supply it with {option}")
}
