//! Textual descriptions of the events of an execution.

use litmus::{LocationId, ScalarType, Span, Test, Value};

use super::{EventOwner, ExplainedEvent};
use crate::candidate::CandidateExecution;
use crate::cells::Extent;
use crate::skeleton::{Owner, Skeleton, Tags};
use crate::valuation::stored_value;

/// Describes the events of an execution in words.
pub(super) fn describe_events(
    test: &Test,
    skeleton: &Skeleton,
    candidate: &CandidateExecution,
) -> Vec<ExplainedEvent> {
    let mut letters = 0;
    let described = skeleton.events.iter().enumerate().map(|(index, event)| {
        let reference = event.reference.or(event.storage);
        let value = if event.tags.has(Tags::R) {
            candidate.values.get(index).copied().flatten()
        } else {
            stored_value(skeleton, index, &candidate.values)
        };
        let access = reference.map(|reference| {
            let location = test.location(reference);
            let value = value.map_or("?".to_owned(), |value| value_text(value, location.scalar_type()));
            format!("{} = {value}", location_text(test, reference, event.extent))
        });
        let is_cooperative = matches!(event.owner, Owner::CooperativeInvocation(..));
        // From the most special tag to the most general: an event has several.
        let category = match event.tags {
            tags if is_cooperative && tags.has(Tags::R) => "cooperative read",
            tags if is_cooperative && tags.has(Tags::W) => "cooperative write",
            _ if is_cooperative => "barrier of the invocations that perform the cooperative access",
            tags if tags.has(Tags::UW) => "undefined initial value",
            tags if tags.has(Tags::IW) => "initial write",
            tags if tags.has(Tags::FINAL) => "final read",
            tags if tags.has(Tags::R | Tags::RMW) => "read half",
            tags if tags.has(Tags::W | Tags::RMW) => "write half",
            tags if tags.has(Tags::R) => "read",
            tags if tags.has(Tags::W) => "write",
            tags if tags.has(Tags::CBAR) => "control barrier",
            tags if tags.has(Tags::ARRIVE) => "arrival",
            tags if tags.has(Tags::WAIT) => "wait",
            tags if tags.has(Tags::F) => "memory barrier",
            tags if tags.has_any(Tags::AVDEVICE | Tags::AVHOST) => "availability operation",
            tags if tags.has_any(Tags::VISDEVICE | Tags::VISHOST) => "visibility operation",
            tags if tags.has_any(Tags::DOMDEVICE | Tags::DOMHOST) => "domain operation",
            _ => "event",
        };
        let instruction = match (event.owner, event.instruction) {
            (Owner::Thread(thread) | Owner::CooperativeInvocation(thread, _), Some(instruction)) => test
                .threads
                .get(usize::from(thread.0))
                .and_then(|t| t.instructions.get(usize::from(instruction)))
                .map(|found| (thread, usize::from(instruction), found)),
            _ => None,
        };
        let (owner, label) = match (event.owner, instruction) {
            (Owner::Thread(thread) | Owner::CooperativeInvocation(thread, _), Some((_, instruction, _))) => {
                letters += 1;
                (EventOwner::Thread(usize::from(thread.0), instruction), event_letter(letters - 1))
            }
            (Owner::Initial, _) => (EventOwner::Initial, access.clone().unwrap_or_default().replace(' ', "")),
            _ => {
                let name = reference.map_or_else(
                    || category.to_owned(),
                    |reference| location_text(test, reference, event.extent),
                );
                (EventOwner::Final, format!("final {name}"))
            }
        };
        ExplainedEvent {
            label,
            owner,
            category,
            text: instruction.map_or(String::new(), |(thread, _, found)| found.kind.to_text(test, thread)),
            span: instruction.map_or(Span::default(), |(_, _, found)| found.span),
            access,
        }
    });
    described.collect()
}

/// Formats an accessed location: the vector component, or else the bytes with their offset.
fn location_text(test: &Test, reference: LocationId, extent: Option<Extent>) -> String {
    let location = test.location(reference);
    match extent.filter(|extent| location.is_vector() && extent.bytes < location.bytes()) {
        Some(extent) if extent.is_whole => {
            format!("{}[{}]", location.name, extent.offset / location.scalar_type().bytes())
        }
        Some(extent) => format!("{}+{}", location.name, extent.offset),
        None => location.name.clone(),
    }
}

/// a, b, …, z, aa, ab, …
fn event_letter(index: usize) -> String {
    let mut text = String::new();
    let mut rest = index + 1;
    while rest > 0 {
        rest -= 1;
        text.insert(0, char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    text
}

/// A value in the words of its type: signed ones may be negative.
pub(super) fn value_text(value: Value, ty: ScalarType) -> String {
    match ty {
        ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => {
            value.to_signed(ty).to_string()
        }
        _ => value.to_string(),
    }
}
