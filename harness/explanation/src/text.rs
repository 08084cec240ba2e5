//! Renders explanations for a terminal: threads as columns, then the edges.

use std::fmt::Write;

use litmus::{Compute, Flow, InstructionKind, Test, ThreadId};
use model::{BrokenAxiom, EventOwner, ExplainedEdge, ExplainedExecution, ExplanationAnswer};

use super::{Explained, clauses, phrases, plain};

/// Renders the whole explanation.
pub fn render(explained: Explained<'_>) -> String {
    let Explained { test, explanation, .. } = explained;
    let mut out = String::new();
    write_line(&mut out, 0, &phrases::headline(test, explanation));
    for sentence in plain::sentences(explained) {
        write_line(&mut out, 0, &sentence);
    }
    write_line(&mut out, 0, "");
    out += &render_steps(explained);
    let sections = clauses::cited_sections(explanation);
    if !sections.is_empty() {
        let linked = sections.iter().any(|section| section.link.is_some());
        let link = if linked { format!(", as {}#NAME has them", clauses::APPENDIX) } else { String::new() };
        write_line(&mut out, 0, "");
        write_line(&mut out, 0, &format!("The rules in short{link}:"));
    }
    for section in sections {
        write_line(&mut out, 1, &section.name);
        for (id, statement) in section.clauses {
            write_line(&mut out, 2, &format!("{id}  {statement}"));
        }
    }
    out
}

/// Formats the executions that show the outcome, event by event and order by order, and the fix of a race.
pub fn render_steps(explained: Explained<'_>) -> String {
    let Explained { test, explanation, .. } = explained;
    let mut out = String::new();
    write_line(&mut out, 0, &phrases::reason_sentence(&explanation.answer));
    match &explanation.answer {
        ExplanationAnswer::Allowed { witness: Some(witness) } => {
            write_table(&mut out, test, witness);
            write_edges(&mut out, witness);
        }
        ExplanationAnswer::Forbidden { closest: Some((execution, broken)), .. } => {
            write_table(&mut out, test, execution);
            write_line(&mut out, 0, &format!("It breaks {}:", phrases::describe_axiom(broken)));
            write_violation(&mut out, execution, broken);
        }
        _ => {}
    }
    if let Some(sentence) = phrases::uninitialised_sentence(explanation) {
        out.push('\n');
        write_line(&mut out, 0, &sentence);
    }
    if let Some(sentence) = phrases::race_sentence(explanation) {
        write_line(&mut out, 0, "");
        write_line(&mut out, 0, &sentence);
    }
    if let Some(found) = &explanation.found_race {
        write_table(&mut out, test, &found.execution);
        write_line(&mut out, 0, &format!("It raises {}:", phrases::describe_axiom(&found.flag)));
        match found.pair {
            Some((from, to)) => {
                write_line(&mut out, 1, &phrases::describe_event(&found.execution, from));
                write_line(&mut out, 1, &phrases::describe_event(&found.execution, to));
            }
            None => write_violation(&mut out, &found.execution, &found.flag),
        }
        write_fix(&mut out, phrases::describe_race_fix(test, &found.fix));
    }
    if let Some(mend) = &explanation.forbidding_fix {
        write_line(&mut out, 0, "");
        write_fix(&mut out, phrases::describe_forbidding_fix(test, mend));
    }
    out
}

fn write_fix(out: &mut String, (sentence, changes): phrases::FixDescription) {
    write_line(out, 0, &sentence);
    for (place, before, after) in changes {
        write_line(out, 1, &format!("{place}: {before}"));
        write_line(out, 1, &format!("{:>1$} {after}", "->", place.chars().count() + 1));
    }
}

pub fn write_line(out: &mut String, indent: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", format!("{}{text}", "  ".repeat(indent)).trim_end());
}

/// Formats the threads side by side: each instruction with its events and the values that they read or write.
pub fn write_table(out: &mut String, test: &Test, execution: &ExplainedExecution) {
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (index, thread) in test.threads.iter().enumerate() {
        let mut cells = vec![phrases::format_thread(test, index)];
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
            let mark = match (labels.is_empty(), has_events(&instruction.kind)) {
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
    write_line(out, 0, "");
    for row in 0..rows {
        let cells = columns.iter().zip(&widths).map(|(cells, width)| {
            let cell = cells.get(row).map_or("", String::as_str);
            format!("{cell:width$}")
        });
        write_line(out, 1, &cells.collect::<Vec<String>>().join(" | "));
    }
    let outcome = phrases::format_outcome(execution);
    if !outcome.is_empty() {
        write_line(out, 1, &format!("finally {outcome}"));
    }
    write_line(out, 0, "");
}

fn has_events(kind: &InstructionKind) -> bool {
    !matches!(
        kind,
        InstructionKind::Compute(Compute::Arithmetic { .. })
            | InstructionKind::Flow(Flow::Label(_) | Flow::Goto(_) | Flow::Branch { .. })
    )
}

/// Writes the edges of an execution, except orders after initial writes and before final reads.
pub fn write_edges(out: &mut String, execution: &ExplainedExecution) {
    let owner = |id| phrases::find_event(execution, id).map(|event| event.owner);
    let is_shown = |edge: &&ExplainedEdge| {
        owner(edge.to) != Some(EventOwner::Final)
            && (owner(edge.from) != Some(EventOwner::Initial) || edge.relation == "rf")
    };
    for edge in execution.edges.iter().filter(is_shown) {
        write_line(out, 1, &format_edge(execution, edge));
    }
}

/// Writes the violation of an axiom: its edges with their derivations.
fn write_violation(out: &mut String, execution: &ExplainedExecution, broken: &BrokenAxiom) {
    if broken.edges.is_empty() {
        for event in &broken.events {
            write_line(out, 1, &phrases::describe_event(execution, *event));
        }
    }
    for edge in &broken.edges {
        write_line(out, 1, &format_edge(execution, edge));
        write_derivation(out, execution, edge, 3);
    }
}

fn format_edge(execution: &ExplainedExecution, edge: &ExplainedEdge) -> String {
    format!(
        "{} --[{}]--> {}",
        phrases::describe_event(execution, edge.from),
        phrases::format_edge_label(edge),
        phrases::describe_event(execution, edge.to)
    )
}

fn write_derivation(out: &mut String, execution: &ExplainedExecution, edge: &ExplainedEdge, indent: usize) {
    let label = |id| phrases::find_event(execution, id).map_or("?", |event| event.label.as_str());
    // One premise may serve several steps of a derivation.
    let mut written: Vec<&ExplainedEdge> = Vec::new();
    for inner in &edge.premises {
        if written.contains(&inner) {
            continue;
        }
        written.push(inner);
        let text = format!(
            "({}) --[{}]--> ({})",
            label(inner.from),
            phrases::format_edge_label(inner),
            label(inner.to)
        );
        write_line(out, indent, &text);
        write_derivation(out, execution, inner, indent + 1);
    }
}
