//! Pictures of executions, independent of the output format: columns of events and the selected arrows.

use litmus::{Test, closed_enum};
use model::{BrokenAxiom, EventId, EventOwner, ExplainedEdge, ExplainedExecution, ExplanationAnswer};

use super::{Explained, phrases, plain};

/// A picture of one execution.
pub struct Picture<'a> {
    /// The lines above the picture.
    pub title: Vec<String>,
    /// The lines below the picture.
    pub notes: Vec<String>,
    /// The broken rule and its edges in the words of the model, below the notes.
    pub rules: Vec<String>,
    pub execution: &'a ExplainedExecution,
    /// The columns, left to right.
    pub columns: Vec<EventColumn>,
    /// The arrows; those that matter most first.
    pub arrows: Vec<Arrow>,
    pub highlighted: Vec<usize>,
}

pub struct EventColumn {
    /// The text above the column.
    pub title: String,
    /// Indices of its events, top to bottom.
    pub events: Vec<usize>,
    /// True if program order runs down it.
    pub has_program_order: bool,
}

/// An arrow between two events.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// Index of its source.
    pub from: usize,
    /// Index of its target.
    pub to: usize,
    /// Its label, line by line.
    pub label: Vec<String>,
    /// Category, which determines the line style.
    pub kind: ArrowKind,
}

closed_enum! {
    /// The kinds of arrows, in the order of their weight.
    pub enum ArrowKind {
        /// Part of the violated axiom.
        Broken,
        Race,
        ReadsFrom,
        FromReads,
        Modification,
        /// Synchronizes-with, system-synchronizes-with, and control barriers.
        Synchronizes,
        /// Any other derived relation.
        Derived,
    }
}

impl ArrowKind {
    /// Returns the colour, from the colour-blind safe palette of Okabe and Ito.
    pub fn colour(self) -> &'static str {
        match self {
            ArrowKind::Broken | ArrowKind::Race => "#d55e00",
            ArrowKind::ReadsFrom => "#0072b2",
            ArrowKind::FromReads => "#b3548f",
            ArrowKind::Modification => "#8a6d00",
            ArrowKind::Synchronizes => "#00795a",
            ArrowKind::Derived => "#555555",
        }
    }

    /// Returns the dash pattern, so that categories differ without colour; empty for a solid line.
    pub fn dashes(self) -> &'static str {
        match self {
            ArrowKind::Broken | ArrowKind::ReadsFrom => "",
            ArrowKind::Race => "9 5",
            ArrowKind::FromReads => "6 3",
            ArrowKind::Modification => "2 3",
            ArrowKind::Synchronizes => "10 3 2 3",
            ArrowKind::Derived => "4 4",
        }
    }

    /// Returns the legend text.
    pub fn legend(self) -> &'static str {
        match self {
            ArrowKind::Broken => "breaks the rule",
            ArrowKind::Race => "race: not ordered",
            ArrowKind::ReadsFrom => "reads from",
            ArrowKind::FromReads => "reads before it is overwritten",
            ArrowKind::Modification => "modification order",
            ArrowKind::Synchronizes => "synchronizes",
            ArrowKind::Derived => "ordered by the model",
        }
    }

    fn from_relation(relation: &str) -> ArrowKind {
        match relation {
            "rf" => ArrowKind::ReadsFrom,
            "fr" => ArrowKind::FromReads,
            "co" => ArrowKind::Modification,
            "sw" | "ssw" | "syncbar" => ArrowKind::Synchronizes,
            _ => ArrowKind::Derived,
        }
    }
}

/// Returns the pictures of an explanation: of its answer, then of its uninitialised read, then of its race.
pub fn build_pictures(explained: Explained<'_>) -> Vec<Picture<'_>> {
    let Explained { test, explanation, .. } = explained;
    let mut pictures = Vec::new();
    let title = || {
        let plain_sentence = plain::sentences(explained).into_iter().next();
        let formal = [phrases::headline(test, explanation), phrases::reason_sentence(&explanation.answer)];
        plain_sentence.into_iter().chain(formal).collect::<Vec<String>>()
    };
    match &explanation.answer {
        ExplanationAnswer::Allowed { witness: Some(execution) } => {
            pictures.push(Picture::new(test, execution, title(), None, None));
        }
        ExplanationAnswer::Forbidden { closest: Some((execution, broken)), .. } => {
            let mut picture = Picture::new(test, execution, title(), Some(broken), None);
            picture.rules.push(format!("It breaks {}:", phrases::describe_axiom(broken)));
            picture.rules.extend(broken.edges.iter().map(|edge| {
                let label = |id| phrases::find_event(execution, id).map_or("?", |event| event.label.as_str());
                format!(
                    "  ({}) to ({}): {}",
                    label(edge.from),
                    label(edge.to),
                    phrases::format_edge_label(edge)
                )
            }));
            pictures.push(picture);
        }
        _ => pictures.push(Picture { notes: title(), ..Picture::without_execution(test) }),
    }
    match (&explanation.found_uninitialised_read, phrases::uninitialised_sentence(explanation)) {
        (Some(found), Some(sentence)) => {
            let mut picture = Picture::new(test, &found.execution, vec![sentence], None, None);
            picture.highlighted.push(event_index(found.read));
            pictures.push(picture);
        }
        (None, Some(sentence)) => {
            if let Some(picture) = pictures.last_mut() {
                picture.notes.push(sentence);
            }
        }
        _ => {}
    }
    match (&explanation.found_race, phrases::race_sentence(explanation)) {
        (Some(found), Some(sentence)) => {
            let pair = found.pair.map(|(from, to)| (event_index(from), event_index(to)));
            let flag = pair.is_none().then_some(&found.flag);
            let mut picture = Picture::new(test, &found.execution, vec![sentence], flag, pair);
            picture.notes.push(format!("It raises {}.", phrases::describe_axiom(&found.flag)));
            let (fix_sentence, changes) = phrases::describe_race_fix(test, &found.fix);
            picture.notes.push(fix_sentence);
            picture.notes.extend(
                changes.into_iter().map(|(place, before, after)| format!("  {place}: {before} -> {after}")),
            );
            pictures.push(picture);
        }
        (None, Some(sentence)) => {
            if let Some(picture) = pictures.last_mut() {
                picture.notes.push(sentence);
            }
        }
        _ => {}
    }
    pictures
}

fn event_index(id: EventId) -> usize {
    usize::from(id.0)
}

impl<'a> Picture<'a> {
    fn without_execution(test: &Test) -> Picture<'a> {
        static NOTHING: ExplainedExecution = ExplainedExecution {
            events: Vec::new(),
            edges: Vec::new(),
            outcome: Vec::new(),
            thin_air: false,
        };
        Picture::new(test, &NOTHING, Vec::new(), None, None)
    }

    /// Returns the picture of an execution, of the broken axiom, or of a race.
    pub fn new(
        test: &Test,
        execution: &'a ExplainedExecution,
        title: Vec<String>,
        broken: Option<&BrokenAxiom>,
        race: Option<(usize, usize)>,
    ) -> Picture<'a> {
        let mut arrows: Vec<Arrow> = Vec::new();
        for edge in broken.iter().flat_map(|broken| &broken.edges) {
            add_arrow(&mut arrows, Arrow { kind: ArrowKind::Broken, ..labelled_arrow(edge, true) });
        }
        if let Some((from, to)) = race {
            add_arrow(&mut arrows, Arrow { from, to, label: vec!["race".to_owned()], kind: ArrowKind::Race });
        }
        let owner = |id: EventId| phrases::find_event(execution, id).map(|event| event.owner);
        let inside = |id: EventId| matches!(owner(id), Some(EventOwner::Thread(..)));
        // Omit edges that the race does not depend on, and orders that are irrelevant to a witness.
        for edge in execution.edges.iter().filter(|edge| inside(edge.from) && inside(edge.to)) {
            let kind = ArrowKind::from_relation(&edge.relation);
            let has_arrow = arrows
                .iter()
                .any(|arrow| (arrow.from, arrow.to) == (event_index(edge.from), event_index(edge.to)));
            let is_relevant = match kind {
                ArrowKind::ReadsFrom | ArrowKind::Synchronizes => true,
                ArrowKind::FromReads | ArrowKind::Modification => race.is_none() && broken.is_none(),
                ArrowKind::Derived => race.is_none() && broken.is_none() && !has_arrow,
                ArrowKind::Broken | ArrowKind::Race => false,
            };
            if is_relevant {
                add_arrow(&mut arrows, Arrow { kind, ..labelled_arrow(edge, false) });
            }
        }
        arrows.sort_by_key(|arrow| arrow.kind);
        let mut highlighted: Vec<usize> =
            broken.iter().flat_map(|broken| &broken.events).map(|id| event_index(*id)).collect();
        highlighted.extend(race.iter().flat_map(|(from, to)| [*from, *to]));

        let is_connected = |at: usize| {
            highlighted.contains(&at) || arrows.iter().any(|arrow| arrow.from == at || arrow.to == at)
        };
        let events_of = |wanted: &dyn Fn(EventOwner) -> bool| -> Vec<usize> {
            (0..execution.events.len()).filter(|at| wanted(execution.events[*at].owner)).collect()
        };
        let side_column = |title: &str, owner: EventOwner| EventColumn {
            title: title.to_owned(),
            events: events_of(&|found| found == owner).into_iter().filter(|at| is_connected(*at)).collect(),
            has_program_order: false,
        };
        let mut columns = vec![side_column("initially", EventOwner::Initial)];
        columns.extend((0..test.threads.len()).map(|thread| EventColumn {
            title: phrases::format_thread(test, thread),
            events: events_of(&|owner| matches!(owner, EventOwner::Thread(found, _) if found == thread)),
            has_program_order: true,
        }));
        columns.push(side_column("finally", EventOwner::Final));
        columns.retain(|column| !column.events.is_empty());
        let outcome = phrases::format_outcome(execution);
        let notes = if outcome.is_empty() { Vec::new() } else { vec![format!("Finally {outcome}.")] };
        Picture { title, notes, rules: Vec::new(), execution, columns, arrows, highlighted }
    }
}

/// Returns the words for a relation of the Vulkan model, read from the source of an edge to its target.
fn relation_words(edge: &ExplainedEdge) -> Option<&'static str> {
    Some(match edge.relation.as_str() {
        "rf" => "read by",
        "fr" => "reads before",
        "co" => "written before",
        "sw" | "ssw" => "synchronizes with",
        "syncbar" => "same barrier",
        "locord" if edge.via.as_deref() == Some("write-read") => "must be seen by",
        "locord" => "ordered before",
        _ => return None,
    })
}

/// Returns an arrow for an edge. Its label has the relation in words; if the edge breaks a rule, the second line has
/// the relation's name and its first clause.
fn labelled_arrow(edge: &ExplainedEdge, is_broken: bool) -> Arrow {
    let words = relation_words(edge);
    let mut label = vec![words.unwrap_or(&edge.relation).to_owned()];
    if is_broken {
        let name = words.map(|_| edge.relation.clone());
        let clause = edge.clauses.split_first().map(|(first, others)| {
            let more = if others.is_empty() { "" } else { " …" };
            format!("{first}{more}")
        });
        let second: Vec<String> = name.into_iter().chain(clause).collect();
        label.extend(Some(second.join(", ")).filter(|line| !line.is_empty()));
    }
    Arrow { from: event_index(edge.from), to: event_index(edge.to), label, kind: ArrowKind::Derived }
}

/// Adds an arrow, or merges it with a parallel one.
fn add_arrow(arrows: &mut Vec<Arrow>, arrow: Arrow) {
    let known = arrows.iter_mut().find(|known| {
        (known.from, known.to) == (arrow.from, arrow.to)
            || (arrow.kind == ArrowKind::Synchronizes
                && known.kind == ArrowKind::Synchronizes
                && (known.to, known.from) == (arrow.from, arrow.to))
    });
    match known {
        Some(known) => {
            if let (Some(first), Some(added_relation)) = (known.label.first_mut(), arrow.label.first())
                && !first.split(", ").any(|told| told == added_relation)
            {
                first.push_str(", ");
                first.push_str(added_relation);
            }
        }
        None => arrows.push(arrow),
    }
}

/// Returns the two lines of an event's box.
pub fn caption(execution: &ExplainedExecution, at: usize) -> [String; 2] {
    let Some(event) = execution.events.get(at) else { return [String::new(), String::new()] };
    let access = event.access.clone().unwrap_or_default();
    match event.owner {
        EventOwner::Thread(..) => {
            let half = if event.category.ends_with("half") {
                format!("{}  ", event.category)
            } else {
                String::new()
            };
            let access = if access.is_empty() { String::new() } else { format!("  {access}") };
            [
                format!("({}) {}", event.label, event.text),
                format!("line {}  {half}{}", event.span.line, access.trim_start()).trim_end().to_owned(),
            ]
        }
        EventOwner::Initial | EventOwner::Final => [format!("({})", event.label), event.category.to_owned()],
    }
}
