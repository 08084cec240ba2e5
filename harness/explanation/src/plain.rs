//! Explanations in plain sentences for shader authors: the observation, and the missing or conflicting
//! synchronization.

use std::collections::BTreeSet;

use litmus::{Placement, Test, ThreadPlace};
use model::{
    BrokenAxiom, EventId, EventOwner, ExplainedEdge, ExplainedEvent, ExplainedExecution, ExplanationAnswer,
    FoundRace,
};

use super::{Explained, phrases};

/// Returns the sentences, those about the outcome first; empty if no plain description exists.
pub fn sentences(explained: Explained<'_>) -> Vec<String> {
    let Explained { test, explanation, .. } = explained;
    let mut all = match &explanation.answer {
        ExplanationAnswer::Allowed { witness: Some(witness) } if !witness.thin_air => {
            EventDescriptions { test, execution: witness }.describe_stale_reads()
        }
        ExplanationAnswer::Forbidden { closest: Some((execution, broken)), .. } => {
            EventDescriptions { test, execution }.describe_cycle(broken).into_iter().collect()
        }
        _ => Vec::new(),
    };
    all.extend(
        explanation
            .found_race
            .as_ref()
            .and_then(|found| EventDescriptions { test, execution: &found.execution }.describe_race(found)),
    );
    all
}

/// Describes the events of one execution.
struct EventDescriptions<'a> {
    test: &'a Test,
    execution: &'a ExplainedExecution,
}

impl EventDescriptions<'_> {
    fn event(&self, id: EventId) -> Option<&ExplainedEvent> {
        phrases::find_event(self.execution, id)
    }

    /// Returns the thread and instruction of an event; `None` for initial writes and final reads.
    fn owner(&self, id: EventId) -> Option<(usize, usize)> {
        match self.event(id)?.owner {
            EventOwner::Thread(thread, instruction) => Some((thread, instruction)),
            EventOwner::Initial | EventOwner::Final => None,
        }
    }

    /// Formats a thread as `P1 (workgroup 1)`, with the widest level that differs between threads.
    fn describe_thread(&self, thread: usize) -> String {
        let Some(own_thread) = self.test.threads.get(thread) else { return "?".to_owned() };
        let name = format!("P{}", own_thread.number);
        let ThreadPlace::Device(place) = own_thread.place else { return format!("{name} (host)") };
        let places: Vec<&Placement> = self
            .test
            .threads
            .iter()
            .filter_map(|thread| match &thread.place {
                ThreadPlace::Device(place) => Some(place),
                ThreadPlace::Host => None,
            })
            .collect();
        let levels: [(&str, Vec<u32>, u32); 3] = [
            ("queue family", places.iter().map(|place| place.queue_family).collect(), place.queue_family),
            ("workgroup", places.iter().map(|place| place.workgroup).collect(), place.workgroup),
            ("subgroup", places.iter().map(|place| place.subgroup).collect(), place.subgroup),
        ];
        let distinguishing_level =
            levels.into_iter().find(|(_, all, own)| all.iter().any(|other| other != own));
        distinguishing_level.map_or_else(|| name.clone(), |(what, _, own)| format!("{name} ({what} {own})"))
    }

    /// Describes an event: `P1 (workgroup 1) reads x at line 9`.
    fn describe_event(&self, id: EventId) -> Option<String> {
        let event = self.event(id)?;
        let Some((thread, _)) = self.owner(id) else { return Some(event.label.clone()) };
        let Some(location) = self.location(event) else {
            return Some(format!(
                "{} at line {} ({})",
                self.describe_thread(thread),
                event.span.line,
                event.text
            ));
        };
        let verb = if event.category.starts_with("read") { "reads" } else { "stores" };
        Some(format!("{} {verb} {location} at line {}", self.describe_thread(thread), event.span.line))
    }

    /// Describes a location: `line 9 of P0`.
    fn describe_location(&self, id: EventId) -> Option<String> {
        let (thread, _) = self.owner(id)?;
        Some(format!("line {} of P{}", self.event(id)?.span.line, self.test.threads.get(thread)?.number))
    }

    fn location<'e>(&self, event: &'e ExplainedEvent) -> Option<&'e str> {
        event.access.as_deref()?.split(" = ").next()
    }

    /// Describes reads that see an older value than one that another thread stores.
    fn describe_stale_reads(&self) -> Vec<String> {
        let edges = self.execution.edges.iter().filter(|edge| edge.relation == "fr");
        let mut reported_reads = BTreeSet::new();
        let mut all = Vec::new();
        for edge in edges {
            let (Some((reader, _)), Some((writer, _))) = (self.owner(edge.from), self.owner(edge.to)) else {
                continue;
            };
            let (Some(read), Some(write)) = (self.event(edge.from), self.event(edge.to)) else { continue };
            // One missed store per read is enough.
            if reader == writer || !reported_reads.insert(edge.from) {
                continue;
            }
            let (Some(access), Some(location)) = (&read.access, self.location(read)) else { continue };
            let why = match self.find_synchronization(edge.to, edge.from) {
                Some((release, acquire)) => format!(
                    "line {} of P{} synchronizes with line {}, which orders the two, but nothing makes the store both available and \
                     visible",
                    release.span.line,
                    self.test.threads.get(writer).map_or(0, |thread| thread.number),
                    acquire.span.line,
                ),
                None => "nothing makes it visible to this read before".to_owned(),
            };
            all.push(format!(
                "{} may still see the old value of {location} at line {} ({access}), although {} stores to it at line {}: {why}.",
                self.describe_thread(reader),
                read.span.line,
                self.describe_thread(writer),
                write.span.line,
            ));
        }
        all
    }

    /// Returns the synchronization that orders a write before a read, if it leads directly from thread to
    /// thread.
    fn find_synchronization(
        &self,
        write: EventId,
        read: EventId,
    ) -> Option<(&ExplainedEvent, &ExplainedEvent)> {
        let (writer, reader) = (self.owner(write)?, self.owner(read)?);
        let pair = self.execution.edges.iter().find(|edge| {
            let (Some(from), Some(to)) = (self.owner(edge.from), self.owner(edge.to)) else { return false };
            is_synchronization(edge)
                && from.0 == writer.0
                && from.1 >= writer.1
                && to.0 == reader.0
                && to.1 <= reader.1
        })?;
        Some((self.event(pair.from)?, self.event(pair.to)?))
    }

    /// Describes a minimal cycle of orders.
    fn describe_cycle(&self, broken: &BrokenAxiom) -> Option<String> {
        if !broken.is_cycle {
            return None;
        }
        let mut parts = Vec::new();
        for edge in &broken.edges {
            let (from, to) = (self.describe_event(edge.from)?, self.describe_event(edge.to)?);
            parts.push(match edge.relation.as_str() {
                "rf" => match self.describe_location(edge.from) {
                    Some(place) => format!("{to} and reads the value that {place} stores"),
                    None => format!("{to} and reads the initial value"),
                },
                "fr" => format!("{from} and reads the value before {to}"),
                "po" => format!("{from} before {to}"),
                _ => {
                    let mut synchronized = Vec::new();
                    self.collect_synchronizations(edge, &mut synchronized);
                    let why = match synchronized.as_slice() {
                        [] => String::new(),
                        all => format!(", as {}", all.join(" and ")),
                    };
                    format!("{from} before {to}{why}")
                }
            });
        }
        (parts.len() > 1).then(|| {
            format!(
                "This is impossible: {}. Each of these orders holds, and together they form a cycle.",
                parts.join("; ")
            )
        })
    }

    /// Collects `line 9 of P0 synchronizes with line 8 of P1`, for each part of an order.
    fn collect_synchronizations(&self, edge: &ExplainedEdge, all: &mut Vec<String>) {
        if is_synchronization(edge) {
            if let (Some(from), Some(to)) =
                (self.describe_location(edge.from), self.describe_location(edge.to))
            {
                let sentence = format!("{from} synchronizes with {to}");
                if !all.contains(&sentence) {
                    all.push(sentence);
                }
            }
            return;
        }
        for inner in &edge.premises {
            self.collect_synchronizations(inner, all);
        }
    }

    /// Describes two accesses that race.
    fn describe_race(&self, found: &FoundRace) -> Option<String> {
        let (first, second) = found.pair?;
        let (from, to) = (self.describe_event(first)?, self.describe_event(second)?);
        let missing =
            match (self.find_synchronization(first, second), self.find_synchronization(second, first)) {
                (None, None) => "nothing both orders the two and makes the write available and visible",
                _ => "although synchronization orders the two, the store is not made available and visible",
            };
        Some(format!(
            "A race: {from} and {to}, and {missing}. The value read is undefined, and so is all later \
             behaviour."
        ))
    }
}

fn is_synchronization(edge: &ExplainedEdge) -> bool {
    matches!(edge.relation.as_str(), "sw" | "ssw" | "meet")
}
