//! The writes before each execution of a dispatch: between two executions with equal versions of a resource, nothing wrote it.
//!
//! Sound for equality: every command, barrier and host write that may write a resource gives it a new version.

use std::collections::HashMap;

use crate::bindings::MemoryBindings;
use crate::hazard::ResourceId;
use crate::journal::{Command, DispatchResource, Event, RecordedAccess, RecordedBarrier};
use crate::timeline::{Step, Timeline};

/// The version of each resource of each dispatch, by the index of its execution.
pub type ContentVersions = HashMap<(usize, ResourceId), usize>;

/// `VK_IMAGE_LAYOUT_UNDEFINED`: a transition from it may discard the contents.
const UNDEFINED: i32 = 0;

/// Finds the versions; `may_write` returns true if a dispatch may write a resource, or without one, memory that is not known.
pub fn content_versions(
    timeline: &Timeline<'_>,
    events: &[Event],
    may_write: impl Fn(&Command, Option<&DispatchResource>) -> bool,
) -> ContentVersions {
    let bindings = MemoryBindings::from_events(events);
    let mut versions = ContentVersions::new();
    // The step of the last write to each resource, and to all of them.
    let (mut last, mut last_of_all): (HashMap<ResourceId, usize>, usize) = (HashMap::new(), 0);
    // Writes of the host that are not looked for may be anywhere.
    let has_unchecked = events.iter().any(|event| matches!(event, Event::UncheckedMapping { .. }));
    for (number, step) in timeline.steps.iter().enumerate() {
        let mut written: Vec<Option<ResourceId>> = Vec::new();
        match step {
            Step::Execute(index) => match timeline.commands.get(*index).map(|executed| executed.command) {
                Some(command @ Command::Dispatch { resources, indirect, missing, .. }) => {
                    let grid = indirect.map(|range| ResourceId::Buffer(range.buffer));
                    for resource in resources.iter().filter_map(DispatchResource::id).chain(grid) {
                        let known = last.get(&resource).copied().unwrap_or(0);
                        let version = if has_unchecked { number } else { known.max(last_of_all) };
                        versions.insert((*index, resource), version);
                    }
                    let writes = resources.iter().filter(|resource| may_write(command, Some(resource)));
                    written.extend(writes.map(DispatchResource::id));
                    written.extend((!missing.is_empty() || may_write(command, None)).then_some(None));
                }
                Some(Command::Other(other)) => {
                    let drawn = other.outputs.and(timeline.commands.get(*index)).map(|draw| draw.outputs);
                    let accesses = other.accesses.iter().chain(drawn.into_iter().flatten());
                    let writes = accesses.filter(|access| access.is_write);
                    written.extend(writes.map(RecordedAccess::id));
                    written.extend(other.unknown.is_some().then_some(None));
                }
                Some(Command::Barrier(RecordedBarrier {
                    image: Some(image),
                    layouts: Some([UNDEFINED, _]),
                    ..
                })) => {
                    written.push(Some(ResourceId::Image(*image)));
                }
                Some(_) | None => {}
            },
            // Of resources that share memory with these, those without the bytes keep their version.
            Step::Host(Event::HostWrites { memory, ranges }) => {
                last.extend(bindings.resources_in(*memory, ranges).map(|resource| (resource, number + 1)));
            }
            _ => {}
        }
        for resource in written {
            match resource {
                Some(resource) => {
                    let aliases = bindings.aliases_of(resource).chain([resource]);
                    last.extend(aliases.map(|resource| (resource, number + 1)));
                }
                None => last_of_all = number + 1,
            }
        }
    }
    versions
}
