//! `race --step`: the steps of both invocations up to a finding, side by side.
//!
//! Without a terminal all steps are printed. On a terminal, each input moves forward or back and prints one step
//! with the values so far.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{BufRead, IsTerminal, stdin, stdout};

use campaign::files;
use results::wire::{RaceLine, TraceEffectRecord, TraceRecord, TraceStepRecord};

use crate::exit::Failure;
use crate::output::{StandardOutput, print_message};

/// Columns of one invocation.
const COLUMN: usize = 48;

/// Prints the steps of a finding, or lets the terminal go through them.
///
/// # Errors
/// If the output cannot be written.
pub(super) fn show_trace(line: &RaceLine, number: u32, out: &mut StandardOutput) -> Result<(), Failure> {
    let Some(trace) = line.trace.as_ref().filter(|trace| !trace.steps.is_empty()) else {
        print_message(&format!(
            "{}: no schedule of the walk shows finding {number}; `explain` says why it is one",
            line.file
        ));
        return Ok(());
    };
    let view = TraceView::new(trace, &line.file);
    match stdin().is_terminal() && stdout().is_terminal() {
        true => view.browse(out),
        false => {
            out.print(&view.heading())?;
            (0..trace.steps.len()).try_for_each(|step| out.print(&view.step_text(step)))?;
            out.print(&view.state_text(trace.steps.len() - 1))
        }
    }
}

/// A trace with the texts of its lines.
struct TraceView<'a> {
    trace: &'a TraceRecord,
    sources: BTreeMap<&'a str, Vec<String>>,
}

impl<'a> TraceView<'a> {
    fn new(trace: &'a TraceRecord, input: &str) -> TraceView<'a> {
        let mut sources: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for step in &trace.steps {
            let read = || files::read_named_source(&step.file, input).unwrap_or_default();
            sources
                .entry(&step.file)
                .or_insert_with(|| read().lines().map(|line| line.trim().to_owned()).collect());
        }
        TraceView { trace, sources }
    }

    fn heading(&self) -> String {
        let [first, rest @ ..] = &self.trace.invocations[..] else { return String::new() };
        let second = rest.first().map(String::as_str).unwrap_or_default();
        let cut = if self.trace.is_cut_off { " (the last ones are missing)" } else { "" };
        format!("\n{} steps{cut}\n      {first:COLUMN$}{second}\n", self.trace.steps.len())
    }

    /// Returns a step in the column of its invocation.
    fn step_text(&self, number: usize) -> String {
        let step = &self.trace.steps[number];
        let source = step.line.and_then(|line| self.sources.get(step.file.as_str())?.get(line as usize - 1));
        let line = step.line.map_or_else(String::new, |line| line.to_string());
        let mut rows = vec![format!("{line:>4} | {}", source.map_or("", String::as_str))];
        rows.extend(step.effects.iter().map(|effect| format!("       {}", effect_text(effect))));
        if self.seen_before(number) != step.seen
            && let Some(seen) = self.seen_text(step)
        {
            rows.push(format!("       {seen}"));
        }
        let indentation = " ".repeat(COLUMN * step.invocation);
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            let number = if index == 0 { (number + 1).to_string() } else { String::new() };
            _ = writeln!(text, "{number:>5} {indentation}{}", row.trim_end());
        }
        text
    }

    /// Returns what the invocation of a step had seen before it.
    fn seen_before(&self, number: usize) -> Option<usize> {
        let own = self.trace.steps[number].invocation;
        self.trace.steps[..number].iter().rev().find(|step| step.invocation == own)?.seen
    }

    /// Describes what the invocation of a step has seen of the other one.
    fn seen_text(&self, step: &TraceStepRecord) -> Option<String> {
        let other = self.trace.invocations.get(1 - step.invocation.min(1))?;
        Some(match step.seen.map(|seen| (seen, self.trace.steps[seen].line)) {
            None => format!("has seen nothing of {other}"),
            Some((_, Some(line))) => format!("has seen everything of {other} up to line {line}"),
            Some((seen, None)) => format!("has seen everything of {other} up to step {}", seen + 1),
        })
    }

    /// Returns the variables of each invocation and the words of memory after a step.
    fn state_text(&self, number: usize) -> String {
        let mut variables = vec![BTreeMap::new(); self.trace.invocations.len()];
        let (mut memory, mut last) = (BTreeMap::new(), vec![None; self.trace.invocations.len()]);
        for step in &self.trace.steps[..=number] {
            last[step.invocation] = Some(step);
            for effect in &step.effects {
                match effect {
                    TraceEffectRecord::Variable { name, value } => {
                        variables[step.invocation].insert(name, value);
                    }
                    TraceEffectRecord::Read { element, value }
                    | TraceEffectRecord::Write { element, after: value, .. } => {
                        memory.insert(element, value);
                    }
                    TraceEffectRecord::Wait | TraceEffectRecord::End => {}
                }
            }
        }
        let list = |all: &BTreeMap<&String, &String>| {
            let all: Vec<String> = all.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        };
        let mut text = format!("\nmemory: {}\n", list(&memory));
        for (index, name) in self.trace.invocations.iter().enumerate() {
            _ = writeln!(text, "{name}: {}", list(&variables[index]));
            if let Some(seen) = last[index].and_then(|step| self.seen_text(step)) {
                _ = writeln!(text, "    {seen}");
            }
        }
        text
    }

    /// Goes through the steps as the terminal asks.
    fn browse(&self, out: &mut StandardOutput) -> Result<(), Failure> {
        out.print(&self.heading())?;
        let (mut number, last) = (0, self.trace.steps.len() - 1);
        let mut input = stdin().lock();
        loop {
            out.print(&(self.step_text(number) + &self.state_text(number)))?;
            out.print(&format!(
                "[{}/{}] Enter: forward, b: back, a number, q: quit\n",
                number + 1,
                last + 1
            ))?;
            let mut word = String::new();
            let read = input.read_line(&mut word).unwrap_or(0);
            match word.trim() {
                _ if read == 0 => return Ok(()),
                "q" => return Ok(()),
                "b" => number = number.saturating_sub(1),
                "" if number == last => return Ok(()),
                "" => number += 1,
                word => match word.parse::<usize>() {
                    Ok(chosen) => number = chosen.clamp(1, last + 1) - 1,
                    Err(_) => out.print("expected Enter, b, q or the number of a step\n")?,
                },
            }
        }
    }
}

fn effect_text(effect: &TraceEffectRecord) -> String {
    match effect {
        TraceEffectRecord::Variable { name, value } => format!("{name} = {value}"),
        TraceEffectRecord::Read { element, value } => format!("reads {element}: {value}"),
        TraceEffectRecord::Write { element, before, after } => {
            format!("writes {element}: {before} -> {after}")
        }
        TraceEffectRecord::Wait => "waits".to_owned(),
        TraceEffectRecord::End => "ends".to_owned(),
    }
}
