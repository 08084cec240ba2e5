//! Pictures of executions, independent of the output format: columns of events and the selected arrows.

use litmus::Test;
use model::{BrokenAxiom, EventId, EventOwner, ExplainedEdge, ExplainedExecution, ExplanationAnswer};

use super::{Explained, words};

/// A picture of one execution.
pub struct Picture<'a> {
    /// Above it.
    pub title: Vec<String>,
    /// Below it.
    pub notes: Vec<String>,
    /// The execution.
    pub execution: &'a ExplainedExecution,
    /// The columns, left to right.
    pub columns: Vec<EventColumn>,
    /// The arrows; those that matter most first.
    pub arrows: Vec<Arrow>,
    /// Highlighted events.
    pub marked: Vec<usize>,
}

/// A column of events.
pub struct EventColumn {
    /// Above it.
    pub title: String,
    /// Indices of its events, top to bottom.
    pub events: Vec<usize>,
    /// True if program order runs down it.
    pub ordered: bool,
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

/// The kinds of arrows, in the order of their weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArrowKind {
    /// Part of the violated axiom.
    Broken,
    /// A race.
    Race,
    /// Reads-from.
    ReadsFrom,
    /// From-reads.
    FromReads,
    /// Modification order.
    Modification,
    /// Synchronizes-with, of the system too, and meetings at a control barrier.
    Synchronizes,
    /// Any other derived relation.
    Derived,
}

impl ArrowKind {
    /// Every kind.
    pub const ALL: [ArrowKind; 7] = [
        ArrowKind::Broken,
        ArrowKind::Race,
        ArrowKind::ReadsFrom,
        ArrowKind::FromReads,
        ArrowKind::Modification,
        ArrowKind::Synchronizes,
        ArrowKind::Derived,
    ];

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
    pub fn meaning(self) -> &'static str {
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

    fn of(relation: &str) -> ArrowKind {
        match relation {
            "rf" => ArrowKind::ReadsFrom,
            "fr" => ArrowKind::FromReads,
            "co" => ArrowKind::Modification,
            "sw" | "ssw" | "syncbar" => ArrowKind::Synchronizes,
            _ => ArrowKind::Derived,
        }
    }
}

/// The pictures of an explanation: of its answer, then of its uninitialised read, then of its race.
pub fn pictures(explained: Explained<'_>) -> Vec<Picture<'_>> {
    let Explained { test, explanation, .. } = explained;
    let mut pictures = Vec::new();
    let title = || vec![words::headline(test, explanation), words::reason(&explanation.answer)];
    match &explanation.answer {
        ExplanationAnswer::Allowed { witness: Some(execution) } => {
            pictures.push(Picture::new(test, execution, title(), None, None));
        }
        ExplanationAnswer::Forbidden { closest: Some((execution, broken)), .. } => {
            let mut picture = Picture::new(test, execution, title(), Some(broken), None);
            picture.notes.push(format!("It breaks {}:", words::rule(broken)));
            picture.notes.extend(broken.edges.iter().map(|edge| {
                let label = |id| words::event(execution, id).map_or("?", |event| event.label.as_str());
                format!("  ({}) to ({}): {}", label(edge.from), label(edge.to), words::edge_anchor(edge))
            }));
            pictures.push(picture);
        }
        _ => pictures.push(Picture { notes: title(), ..Picture::empty(test) }),
    }
    match (&explanation.uninitialised_found, words::uninitialised(explanation)) {
        (Some(found), Some(says)) => {
            let mut picture = Picture::new(test, &found.execution, vec![says], None, None);
            picture.marked.push(index(found.read));
            pictures.push(picture);
        }
        (None, Some(says)) => {
            if let Some(picture) = pictures.last_mut() {
                picture.notes.push(says);
            }
        }
        _ => {}
    }
    match (&explanation.race_found, words::race(explanation)) {
        (Some(found), Some(says)) => {
            let pair = found.pair.map(|(from, to)| (index(from), index(to)));
            let flag = pair.is_none().then_some(&found.flag);
            let mut picture = Picture::new(test, &found.execution, vec![says], flag, pair);
            picture.notes.push(format!("It raises {}.", words::rule(&found.flag)));
            let (says, changes) = words::mend(test, &found.fix);
            picture.notes.push(says);
            picture.notes.extend(
                changes.into_iter().map(|(place, before, after)| format!("  {place}: {before} -> {after}")),
            );
            pictures.push(picture);
        }
        (None, Some(says)) => {
            if let Some(picture) = pictures.last_mut() {
                picture.notes.push(says);
            }
        }
        _ => {}
    }
    pictures
}

fn index(id: EventId) -> usize {
    usize::from(id.0)
}

impl<'a> Picture<'a> {
    /// A picture without an execution.
    fn empty(test: &Test) -> Picture<'a> {
        static NOTHING: ExplainedExecution = ExplainedExecution {
            events: Vec::new(),
            edges: Vec::new(),
            outcome: Vec::new(),
            thin_air: false,
        };
        Picture::new(test, &NOTHING, Vec::new(), None, None)
    }

    /// The picture of an execution, of the broken axiom, or of a race.
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
        let owner = |id: EventId| words::event(execution, id).map(|event| event.owner);
        let inside = |id: EventId| matches!(owner(id), Some(EventOwner::Thread(..)));
        // Omit edges that the race does not depend on, and orders that are irrelevant to a witness.
        for edge in execution.edges.iter().filter(|edge| inside(edge.from) && inside(edge.to)) {
            let kind = ArrowKind::of(&edge.relation);
            let told =
                arrows.iter().any(|arrow| (arrow.from, arrow.to) == (index(edge.from), index(edge.to)));
            let wanted = match kind {
                ArrowKind::ReadsFrom | ArrowKind::Synchronizes => true,
                ArrowKind::FromReads | ArrowKind::Modification => race.is_none() && broken.is_none(),
                ArrowKind::Derived => race.is_none() && broken.is_none() && !told,
                ArrowKind::Broken | ArrowKind::Race => false,
            };
            if wanted {
                add_arrow(&mut arrows, Arrow { kind, ..labelled_arrow(edge, false) });
            }
        }
        arrows.sort_by_key(|arrow| arrow.kind);
        let mut marked: Vec<usize> =
            broken.iter().flat_map(|broken| &broken.events).map(|id| index(*id)).collect();
        marked.extend(race.iter().flat_map(|(from, to)| [*from, *to]));

        let drawn =
            |at: usize| marked.contains(&at) || arrows.iter().any(|arrow| arrow.from == at || arrow.to == at);
        let of = |wanted: &dyn Fn(EventOwner) -> bool| -> Vec<usize> {
            (0..execution.events.len()).filter(|at| wanted(execution.events[*at].owner)).collect()
        };
        let aside = |title: &str, owner: EventOwner| EventColumn {
            title: title.to_owned(),
            events: of(&|found| found == owner).into_iter().filter(|at| drawn(*at)).collect(),
            ordered: false,
        };
        let mut columns = vec![aside("initially", EventOwner::Initial)];
        columns.extend((0..test.threads.len()).map(|thread| EventColumn {
            title: words::thread(test, thread),
            events: of(&|owner| matches!(owner, EventOwner::Thread(found, _) if found == thread)),
            ordered: true,
        }));
        columns.push(aside("finally", EventOwner::Final));
        columns.retain(|column| !column.events.is_empty());
        let outcome = words::outcome(execution);
        let notes = if outcome.is_empty() { Vec::new() } else { vec![format!("Finally {outcome}.")] };
        Picture { title, notes, execution, columns, arrows, marked }
    }
}

/// Longest label of a satisfied alternative; longer texts are only below the picture.
const LONGEST_LABEL: usize = 28;

fn labelled_arrow(edge: &ExplainedEdge, whole: bool) -> Arrow {
    let mut label = vec![edge.relation.clone()];
    if whole {
        let whole = words::relation(edge);
        if whole.chars().count() <= LONGEST_LABEL {
            label = vec![whole];
        }
        if let [first, others @ ..] = edge.clauses.as_slice() {
            let more = if others.is_empty() { "" } else { " …" };
            label.push(format!("{first}{more}"));
        }
    }
    Arrow { from: index(edge.from), to: index(edge.to), label, kind: ArrowKind::Derived }
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
            if let (Some(first), Some(also)) = (known.label.first_mut(), arrow.label.first())
                && !first.split(", ").any(|told| told == also)
            {
                first.push_str(", ");
                first.push_str(also);
            }
        }
        None => arrows.push(arrow),
    }
}

/// The two lines of an event's box.
pub fn caption(execution: &ExplainedExecution, at: usize) -> [String; 2] {
    let Some(event) = execution.events.get(at) else { return [String::new(), String::new()] };
    let access = event.access.clone().unwrap_or_default();
    match event.owner {
        EventOwner::Thread(..) => {
            let half = if event.what.ends_with("half") { format!("{}  ", event.what) } else { String::new() };
            let access = if access.is_empty() { String::new() } else { format!("  {access}") };
            [
                format!("({}) {}", event.label, event.text),
                format!("line {}  {half}{}", event.span.line, access.trim_start()).trim_end().to_owned(),
            ]
        }
        EventOwner::Initial | EventOwner::Final => [format!("({})", event.label), event.what.to_owned()],
    }
}
