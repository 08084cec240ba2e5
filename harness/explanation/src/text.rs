//! Renders explanations for a terminal: threads as columns, then the edges.

use std::fmt::Write;

use litmus::{Compute, Flow, InstructionKind, Test, ThreadId};
use model::{BrokenAxiom, EventOwner, ExplainedEdge, ExplainedExecution, ExplanationAnswer};

use super::{Explained, plain, rules, words};

/// The whole explanation.
pub fn write(explained: Explained<'_>) -> String {
    let Explained { test, explanation, .. } = explained;
    let mut out = String::new();
    line(&mut out, 0, &words::headline(test, explanation));
    for sentence in plain::sentences(explained) {
        line(&mut out, 0, &sentence);
    }
    line(&mut out, 0, "");
    out += &steps(explained);
    let sections = rules::sections(explanation);
    if !sections.is_empty() {
        let linked = sections.iter().any(|section| section.link.is_some());
        let link = if linked { format!(", as {}#NAME has them", rules::APPENDIX) } else { String::new() };
        line(&mut out, 0, "");
        line(&mut out, 0, &format!("The rules in short{link}:"));
    }
    for section in sections {
        line(&mut out, 1, &section.name);
        for (id, statement) in section.clauses {
            line(&mut out, 2, &format!("{id}  {statement}"));
        }
    }
    out
}

/// Formats the executions that show the outcome, event by event and order by order, and the fix of a race.
pub fn steps(explained: Explained<'_>) -> String {
    let Explained { test, explanation, .. } = explained;
    let mut out = String::new();
    line(&mut out, 0, &words::reason(&explanation.answer));
    match &explanation.answer {
        ExplanationAnswer::Allowed { witness: Some(witness) } => {
            table(&mut out, test, witness);
            drawn(&mut out, witness);
        }
        ExplanationAnswer::Forbidden { closest: Some((execution, broken)), .. } => {
            table(&mut out, test, execution);
            line(&mut out, 0, &format!("It breaks {}:", words::rule(broken)));
            rule(&mut out, execution, broken);
        }
        _ => {}
    }
    if let Some(says) = words::uninitialised(explanation) {
        out.push('\n');
        line(&mut out, 0, &says);
    }
    if let Some(says) = words::race(explanation) {
        line(&mut out, 0, "");
        line(&mut out, 0, &says);
    }
    if let Some(found) = &explanation.race_found {
        table(&mut out, test, &found.execution);
        line(&mut out, 0, &format!("It raises {}:", words::rule(&found.flag)));
        match found.pair {
            Some((from, to)) => {
                line(&mut out, 1, &words::event_in_words(&found.execution, from));
                line(&mut out, 1, &words::event_in_words(&found.execution, to));
            }
            None => rule(&mut out, &found.execution, &found.flag),
        }
        mended(&mut out, words::mend(test, &found.fix));
    }
    if let Some(mend) = &explanation.forbidding_fix {
        line(&mut out, 0, "");
        mended(&mut out, words::forbids(test, mend));
    }
    out
}

fn mended(out: &mut String, (says, changes): words::Mended) {
    line(out, 0, &says);
    for (place, before, after) in changes {
        line(out, 1, &format!("{place}: {before}"));
        line(out, 1, &format!("{:>1$} {after}", "->", place.chars().count() + 1));
    }
}

/// A line, indented.
pub fn line(out: &mut String, indent: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", format!("{}{text}", "  ".repeat(indent)).trim_end());
}

/// Formats the threads side by side: each instruction with its events and the values that they read or write.
pub fn table(out: &mut String, test: &Test, execution: &ExplainedExecution) {
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (index, thread) in test.threads.iter().enumerate() {
        let mut cells = vec![words::thread(test, index)];
        for (at, instruction) in thread.instructions.iter().enumerate() {
            let events: Vec<&model::ExplainedEvent> = execution
                .events
                .iter()
                .filter(|event| event.owner == EventOwner::Thread(index, at))
                .collect();
            let labels: Vec<&str> = events.iter().map(|event| event.label.as_str()).collect();
            let id = ThreadId(u16::try_from(index).unwrap_or(u16::MAX));
            let text = instruction.kind.to_text(test, id);
            let accesses: Vec<String> = events.iter().filter_map(|event| event.access.clone()).collect();
            let mark = match (labels.is_empty(), makes_events(&instruction.kind)) {
                (false, _) => format!("({})", labels.join(",")),
                // An instruction that this execution skips.
                (true, true) => "-".to_owned(),
                (true, false) => String::new(),
            };
            let access =
                if accesses.is_empty() { String::new() } else { format!("  [{}]", accesses.join("; ")) };
            cells.push(format!("{mark:>5} {:>3} {text}{access}", instruction.span.line));
        }
        columns.push(cells);
    }
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = columns
        .iter()
        .map(|cells| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    line(out, 0, "");
    for row in 0..rows {
        let cells = columns.iter().zip(&widths).map(|(cells, width)| {
            let cell = cells.get(row).map_or("", String::as_str);
            format!("{cell:width$}")
        });
        line(out, 1, &cells.collect::<Vec<String>>().join(" | "));
    }
    let outcome = words::outcome(execution);
    if !outcome.is_empty() {
        line(out, 1, &format!("finally {outcome}"));
    }
    line(out, 0, "");
}

fn makes_events(kind: &InstructionKind) -> bool {
    !matches!(
        kind,
        InstructionKind::Compute(Compute::Arithmetic { .. })
            | InstructionKind::Flow(Flow::Label(_) | Flow::Goto(_) | Flow::Branch { .. })
    )
}

/// Writes the edges of an execution, except orders after initial writes and before final reads.
pub fn drawn(out: &mut String, execution: &ExplainedExecution) {
    let owner = |id| words::event(execution, id).map(|event| event.owner);
    let plain = |edge: &&ExplainedEdge| {
        owner(edge.to) != Some(EventOwner::Final)
            && (owner(edge.from) != Some(EventOwner::Initial) || edge.relation == "rf")
    };
    for edge in execution.edges.iter().filter(plain) {
        line(out, 1, &step(execution, edge));
    }
}

/// Writes the violation of an axiom: its edges with their derivations.
fn rule(out: &mut String, execution: &ExplainedExecution, broken: &BrokenAxiom) {
    if broken.edges.is_empty() {
        for event in &broken.events {
            line(out, 1, &words::event_in_words(execution, *event));
        }
    }
    for edge in &broken.edges {
        line(out, 1, &step(execution, edge));
        because(out, execution, edge, 3);
    }
}

fn step(execution: &ExplainedExecution, edge: &ExplainedEdge) -> String {
    format!(
        "{} --[{}]--> {}",
        words::event_in_words(execution, edge.from),
        words::edge_anchor(edge),
        words::event_in_words(execution, edge.to)
    )
}

fn because(out: &mut String, execution: &ExplainedExecution, edge: &ExplainedEdge, indent: usize) {
    let label = |id| words::event(execution, id).map_or("?", |event| event.label.as_str());
    for inner in &edge.because {
        let text =
            format!("({}) --[{}]--> ({})", label(inner.from), words::edge_anchor(inner), label(inner.to));
        line(out, indent, &text);
        because(out, execution, inner, indent + 1);
    }
}
