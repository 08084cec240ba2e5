//! Hazards as lines of output.

use ::record::hazard::{AccessSide, CommandHazard, Conflict, MissingOrder, ResourceId};
use ::record::journal::{Command, ProcessJournal};
use ::record::redundancy::RedundantBarrier;
use ::record::timeline::Timeline;
use results::wire::{HAZARD_SCHEMA, HazardCommand, HazardKind, HazardLine, RedundantBarrierRecord};

use super::inventory::{describe_command, entry_of, resource_names};
use super::masks::{ACCESSES, STAGES, name_of};

/// Converts a redundant barrier of a process.
pub fn redundant_line(
    process: &ProcessJournal,
    timeline: &Timeline<'_>,
    barrier: RedundantBarrier,
) -> RedundantBarrierRecord {
    let executed = timeline.commands.get(barrier.command);
    RedundantBarrierRecord {
        process: process.process,
        index: barrier.command as u64,
        label: executed.and_then(|executed| executed.label).map(str::to_owned),
        what: executed.map_or(String::new(), |executed| describe_command(executed.command, None)),
        count: barrier.count,
    }
}

/// Converts a hazard of a process.
pub fn hazard_line(process: &ProcessJournal, timeline: &Timeline<'_>, hazard: &CommandHazard) -> HazardLine {
    let names = resource_names(&process.events);
    let command = |index: usize| {
        let executed = timeline.commands.get(index);
        let what = executed.map_or(String::new(), |executed| {
            describe_command(executed.command, entry_of(process, executed.command))
        });
        let label = executed.and_then(|executed| executed.label).map(str::to_owned);
        HazardCommand { index: index as u64, label, what }
    };
    let second = hazard.second.and_then(|second| timeline.commands.get(second));
    let transition = second.and_then(|executed| match executed.command {
        Command::Barrier { is_subpass: true, .. } => Some("a subpass dependency before the transition"),
        Command::Barrier { .. } => Some("the barrier of the transition"),
        _ => None,
    });
    let (kind, id) = match hazard.resource {
        ResourceId::Buffer(id) => ("buffer", id),
        ResourceId::Image(id) => ("image", id),
    };
    let resource = names.get(&id).map_or(format!("{kind} {id}"), |name| format!("{kind} {name}"));
    HazardLine {
        schema: HAZARD_SCHEMA.to_owned(),
        process: process.process,
        kind: match hazard.conflict {
            Conflict::WriteAfterWrite => HazardKind::WriteAfterWrite,
            Conflict::ReadAfterWrite => HazardKind::ReadAfterWrite,
            Conflict::WriteAfterRead => HazardKind::WriteAfterRead,
            Conflict::Host => HazardKind::Host,
        },
        commands: std::iter::once(hazard.first).chain(hazard.second).map(command).collect(),
        resource,
        bytes: hazard.bytes.map(|(from, to)| [from, to]),
        missing: describe_missing(hazard, transition.is_some()),
        fix: barrier_code(hazard, transition),
        is_possible: hazard.is_possible,
        count: hazard.count,
    }
}

fn describe_missing(hazard: &CommandHazard, is_transition: bool) -> String {
    let (before, after) = (hazard.before, hazard.after);
    match hazard.missing {
        MissingOrder::Execution if hazard.conflict == Conflict::Host => {
            "the host wrote the bytes before it waited for the command".to_owned()
        }
        MissingOrder::Ownership => {
            "no transfer of ownership: a release on the first queue family and an acquire on the second"
                .to_owned()
        }
        MissingOrder::Execution => {
            let stage = |stage: u64, is_transition: bool| match (stage, is_transition) {
                (0, _) | (_, true) => "the layout transition",
                (stage, false) => name_of(&STAGES, stage),
            };
            format!(
                "no execution dependency from {} to {}",
                stage(before.stage, false),
                stage(after.stage, is_transition)
            )
        }
        MissingOrder::Availability => format!(
            "the write is not made available: no source access mask contains {}",
            name_of(&ACCESSES, before.access)
        ),
        MissingOrder::Visibility => format!(
            "the write is not made visible: no destination access mask contains {} at {}",
            name_of(&ACCESSES, after.access),
            name_of(&STAGES, after.stage)
        ),
    }
}

/// Returns the stage of the earlier command; a layout transition has none and is ordered by every stage.
fn before_stage(hazard: &CommandHazard) -> u64 {
    if hazard.before.stage == 0 { 1 << 16 } else { hazard.before.stage }
}

/// Returns the memory barrier between the commands, as C code.
fn barrier_code(hazard: &CommandHazard, transition: Option<&str>) -> String {
    if hazard.conflict == Conflict::Host {
        return "wait for the command's fence before the host writes".to_owned();
    }
    if hazard.missing == MissingOrder::Ownership {
        return "one barrier on each queue, with .srcQueueFamilyIndex and .dstQueueFamilyIndex of both"
            .to_owned();
    }
    let mask = |prefix: &str, name: &str| match name {
        "NONE" => "0".to_owned(),
        name => format!("VK_{prefix}_2_{name}_BIT"),
    };
    let side = |side: AccessSide, has_access: bool| {
        let access = if has_access { name_of(&ACCESSES, side.access) } else { "NONE" };
        (mask("PIPELINE_STAGE", name_of(&STAGES, side.stage)), mask("ACCESS", access))
    };
    let before = AccessSide { stage: before_stage(hazard), ..hazard.before };
    if let Some(transition) = transition {
        let (stage, access) = (name_of(&STAGES, before.stage), name_of(&ACCESSES, before.access));
        let access = if access == "NONE" {
            String::new()
        } else {
            format!(", .srcAccessMask |= VK_ACCESS_2_{access}_BIT")
        };
        return format!("in {transition}, .srcStageMask |= VK_PIPELINE_STAGE_2_{stage}_BIT{access}");
    }
    // A write after a read needs execution order alone.
    let has_access = hazard.conflict != Conflict::WriteAfterRead;
    let ((from, from_access), (to, to_access)) = (side(before, has_access), side(hazard.after, has_access));
    format!(
        "VkMemoryBarrier2 barrier = {{ .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2, .srcStageMask = {from}, \
         .srcAccessMask = {from_access}, .dstStageMask = {to}, .dstAccessMask = {to_access} }};"
    )
}
