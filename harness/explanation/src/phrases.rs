//! Phrases that all output formats share.

use litmus::{Race, Test, ThreadPlace};
use model::{
    BrokenAxiom, EventId, EventOwner, ExplainedEdge, ExplainedEvent, ExplainedExecution, Explanation,
    ExplanationAnswer, FixSearchResult, FoundRace, InstructionChange, Minimality,
};

/// `MP+rel-acq under vulkan: P1:r0 == 1 /\ P1:r1 == 0 is forbidden`
pub fn headline(test: &Test, explanation: &Explanation) -> String {
    let answer = match explanation.answer {
        ExplanationAnswer::Allowed { .. } => "allowed",
        ExplanationAnswer::Forbidden { .. } => "forbidden",
        ExplanationAnswer::Impossible => "impossible",
        ExplanationAnswer::Unknown => "not decided within the bounds",
    };
    format!("{} under {}: {} is {answer}", test.name, explanation.model, explanation.outcome)
}

pub fn reason_sentence(answer: &ExplanationAnswer) -> String {
    match answer {
        ExplanationAnswer::Allowed { witness: Some(execution) } if execution.thin_air => {
            "This consistent execution shows it, by values out of thin air: they depend on themselves. No rule excludes that, and no implementation is known to show it."
                .to_owned()
        }
        ExplanationAnswer::Allowed { witness: Some(_) } => "This consistent execution shows it.".to_owned(),
        ExplanationAnswer::Allowed { witness: None } => {
            "A consistent execution shows it; none was met within the bounds of this search.".to_owned()
        }
        ExplanationAnswer::Forbidden { closest: Some(_), candidates, complete } => {
            match (candidates, complete) {
                (1, true) => "The only candidate execution that shows it breaks a rule of the model:".to_owned(),
                (count, true) => format!(
                    "Each of the {count} candidate executions that show it breaks a rule of the model. The closest one:"
                ),
                (count, false) => format!(
                    "Every candidate execution that shows it breaks a rule of the model. The closest of the {count} that were examined:"
                ),
            }
        }
        ExplanationAnswer::Forbidden { closest: None, .. } => {
            "No consistent execution shows it; no candidate that does was met within the bounds of this search."
                .to_owned()
        }
        ExplanationAnswer::Impossible => {
            "No candidate execution shows it: no write stores such values, or no path leads there.".to_owned()
        }
        ExplanationAnswer::Unknown => "The search reached its bounds.".to_owned(),
    }
}

/// Returns a sentence about races; `None` for a race-free program.
pub fn race_sentence(explanation: &Explanation) -> Option<String> {
    match (&explanation.found_race, explanation.race) {
        (Some(found), _) if explanation.race_thin_air => Some(format!(
            "It races only where values come out of thin air, which no implementation is known to show. {}",
            describe_found_race(found)
        )),
        (Some(found), _) => Some(describe_found_race(found)),
        (None, Race::Racy) => Some(
            "The program races, so its outcomes are undefined; no racing execution was met within the bounds of this search."
                .to_owned(),
        ),
        (None, Race::Unknown) => {
            Some("The search could not decide within its bounds whether the program races.".to_owned())
        }
        (None, Race::Free) => None,
    }
}

/// Returns a sentence about uninitialised reads; `None` without any.
pub fn uninitialised_sentence(explanation: &Explanation) -> Option<String> {
    match (&explanation.found_uninitialised_read, explanation.uninitialised_read) {
        (Some(found), _) => {
            let read = describe_event(&found.execution, found.read);
            Some(format!(
                "An uninitialised read: in a consistent execution nothing is written before {read}. What it returns is undefined."
            ))
        }
        (None, Some(true)) => Some(
            "A read is uninitialised, and its value is undefined; the search met no such execution within \
             its bounds."
                .to_owned(),
        ),
        (None, Some(false)) => None,
        (None, None) => {
            Some("The search could not decide within its bounds whether a read is uninitialised.".to_owned())
        }
    }
}

fn describe_found_race(found: &FoundRace) -> String {
    let start = "The program races, so its outcomes are undefined:";
    match found.pair {
        Some((from, to)) => {
            let label = |id| find_event(&found.execution, id).map_or("?", |event| event.label.as_str());
            let missing = match found.missing_relations.as_slice() {
                [] => String::new(),
                [one] => format!(" `{one}` does not join them in either direction."),
                [all @ .., last] => {
                    format!(" Neither `{}` nor `{last}` joins them in either direction.", all.join("` nor `"))
                }
            };
            format!(
                "{start} in this consistent execution nothing orders ({}) and ({}).{missing}",
                label(from),
                label(to)
            )
        }
        None => format!("{start} this consistent execution raises a flag."),
    }
}

/// A fix: a sentence, and the changed lines as place, before and after.
pub type FixDescription = (String, Vec<(String, String, String)>);

pub fn describe_race_fix(test: &Test, mend: &FixSearchResult) -> FixDescription {
    match mend {
        FixSearchResult::Found { changes, minimality: least, allowed } => {
            let consequence = match allowed {
                Some(true) => " The outcome is then allowed.",
                Some(false) => " The outcome is then forbidden.",
                None => "",
            };
            (
                format_fix_sentence("removes the race", changes, *least) + consequence,
                change_rows(test, changes),
            )
        }
        FixSearchResult::Impossible => (
            "No strengthening of its instructions removes the race: it lacks synchronization.".to_owned(),
            Vec::new(),
        ),
        FixSearchResult::LimitReached => {
            ("The search found no fix within its bounds.".to_owned(), Vec::new())
        }
    }
}

/// Describes the fix that forbids the outcome.
pub fn describe_forbidding_fix(test: &Test, mend: &FixSearchResult) -> FixDescription {
    match mend {
        FixSearchResult::Found { changes, minimality: least, .. } => (
            format_fix_sentence("forbids the outcome", changes, *least) + " The program is then race-free.",
            change_rows(test, changes),
        ),
        FixSearchResult::Impossible => (
            "No strengthening of its instructions forbids the outcome: it is allowed even with the \
             strongest instructions."
                .to_owned(),
            Vec::new(),
        ),
        FixSearchResult::LimitReached => {
            ("The search found no change that forbids the outcome within its bounds.".to_owned(), Vec::new())
        }
    }
}

fn format_fix_sentence(what: &str, changes: &[InstructionChange], least: Minimality) -> String {
    let lines = match changes.len() {
        1 => "one line".to_owned(),
        count => format!("{count} lines"),
    };
    match least {
        Minimality::Cheapest => format!("The cheapest strengthening that {what} changes {lines}."),
        Minimality::Irreducible => {
            format!("A minimal strengthening that {what} changes {lines}.")
        }
        Minimality::Unknown => {
            format!("A strengthening that {what}, which may not be minimal, changes {lines}.")
        }
    }
}

fn change_rows(test: &Test, changes: &[InstructionChange]) -> Vec<(String, String, String)> {
    let row = |change: &InstructionChange| {
        let number = test.threads.get(change.thread).map_or(0, |thread| thread.number);
        (format!("P{number} line {}", change.span.line), change.before.clone(), change.after.clone())
    };
    changes.iter().map(row).collect()
}

/// Describes a broken axiom or a raised flag: `breaks consistency, acyclic …`.
pub fn describe_axiom(broken: &BrokenAxiom) -> String {
    format!("`{}` ({})", broken.text, format_citation(Some(&broken.location), &broken.clauses))
}

/// `vulkan-body.cat:12; VK-LO-05`
fn format_citation(place: Option<&model::StatementLocation>, clauses: &[String]) -> String {
    let place = place.map(|place| format!("{}:{}", place.file, place.line));
    let clauses = (!clauses.is_empty()).then(|| clauses.join(" "));
    place.into_iter().chain(clauses).collect::<Vec<String>>().join("; ")
}

/// `locord: write-read`
pub fn format_relation(edge: &ExplainedEdge) -> String {
    match &edge.via {
        Some(via) => format!("{}: {via}", edge.relation),
        None => edge.relation.clone(),
    }
}

/// `locord: write-read; vulkan-body.cat:12; VK-LO-05`
pub fn format_edge_label(edge: &ExplainedEdge) -> String {
    match format_citation(edge.statement.as_ref(), &edge.clauses) {
        anchor if anchor.is_empty() => format_relation(edge),
        anchor => format!("{}; {anchor}", format_relation(edge)),
    }
}

pub fn find_event(execution: &ExplainedExecution, id: EventId) -> Option<&ExplainedEvent> {
    execution.events.get(usize::from(id.0))
}

/// `(a) st.av.dv.sc0 x, 1, line 8`
pub fn describe_event(execution: &ExplainedExecution, id: EventId) -> String {
    let Some(event) = find_event(execution, id) else { return "(?)".to_owned() };
    let half =
        if event.category.ends_with("half") { format!(" ({})", event.category) } else { String::new() };
    match event.owner {
        EventOwner::Thread(..) => format!("({}) {}{half}, line {}", event.label, event.text, event.span.line),
        EventOwner::Initial | EventOwner::Final => format!("({}) {}", event.label, event.category),
    }
}

/// `P0 (sg 0, wg 0, qf 0)`
pub fn format_thread(test: &Test, index: usize) -> String {
    let Some(thread) = test.threads.get(index) else { return "?".to_owned() };
    match thread.place {
        ThreadPlace::Device(place) => format!(
            "P{} (sg {}, wg {}, qf {})",
            thread.number, place.subgroup, place.workgroup, place.queue_family
        ),
        ThreadPlace::Host => format!("P{} (host)", thread.number),
    }
}

/// `P1:r0 = 1, P1:r1 = 0`
pub fn format_outcome(execution: &ExplainedExecution) -> String {
    let values = execution.outcome.iter().map(|(name, value)| format!("{name} = {value}"));
    values.collect::<Vec<String>>().join(", ")
}
