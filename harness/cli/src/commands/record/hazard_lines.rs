//! Hazards as lines of output.

use ::record::hazard::{CommandHazard, Conflict, MissingOrder};
use ::record::journal::{Command, Event, ProcessJournal};
use ::record::redundancy::RedundantBarrier;
use ::record::timeline::Timeline;
use device::mask_names::{access_names, layout_name, old_stage_names, stage_names};
use results::wire::{
    HAZARD_SCHEMA, HazardCommand, HazardKind, HazardLine, OtherHazard, RedundantBarrierRecord,
};

use super::inventory::CommandNames;

/// The stage of presentations in recordings.
const PRESENTATION: u64 = 1 << 63;

/// Converts a redundant barrier of a process.
pub fn redundant_line(
    process: u32,
    names: &CommandNames<'_>,
    timeline: &Timeline<'_>,
    barrier: RedundantBarrier,
) -> RedundantBarrierRecord {
    let HazardCommand { index, label, what } = hazard_command(names, timeline, barrier.command);
    RedundantBarrierRecord { process, index, label, what, count: barrier.count }
}

fn hazard_command(names: &CommandNames<'_>, timeline: &Timeline<'_>, index: usize) -> HazardCommand {
    let executed = timeline.commands.get(index);
    HazardCommand {
        index: index as u64,
        label: executed.and_then(|executed| executed.label).map(str::to_owned),
        what: executed.map_or(String::new(), |executed| names.describe_command(executed.command)),
    }
}

/// Converts the hazards of a process that one barrier orders; `None` without any.
pub fn hazard_line(
    process: &ProcessJournal,
    names: &CommandNames<'_>,
    timeline: &Timeline<'_>,
    group: &[CommandHazard],
) -> Option<HazardLine> {
    let (hazard, others) = group.split_first()?;
    let second = hazard.second.and_then(|second| timeline.commands.get(second));
    let transition = second.and_then(|executed| match executed.command {
        Command::Barrier { is_subpass: true, .. } => Some("a subpass dependency before the transition"),
        Command::Barrier { .. } => Some("the barrier of the transition"),
        _ => None,
    });
    let commands = |hazard: &CommandHazard| {
        let all = std::iter::once(hazard.first).chain(hazard.second);
        all.map(|index| hazard_command(names, timeline, index)).collect()
    };
    let kind = |hazard: &CommandHazard| match hazard.conflict {
        Conflict::WriteAfterWrite => HazardKind::WriteAfterWrite,
        Conflict::ReadAfterWrite => HazardKind::ReadAfterWrite,
        Conflict::WriteAfterRead => HazardKind::WriteAfterRead,
        Conflict::Host => HazardKind::Host,
        Conflict::Layout => HazardKind::Layout,
    };
    let resource = |hazard: &CommandHazard| names.describe_resource(hazard.resource);
    let other = |hazard: &CommandHazard| OtherHazard {
        kind: kind(hazard),
        commands: commands(hazard),
        resource: resource(hazard),
    };
    let is_new = |event: &Event| matches!(event, Event::Device { has_synchronization2: true, .. });
    Some(HazardLine {
        schema: HAZARD_SCHEMA.to_owned(),
        process: process.process,
        kind: kind(hazard),
        commands: commands(hazard),
        resource: resource(hazard),
        bytes: hazard.bytes.map(|(from, to)| [from, to]),
        missing: match (describe_missing(hazard, transition.is_some()), hazard.is_possible) {
            (missing, false) => missing,
            (missing, true) => format!("{missing}; unknown: {}", describe_unknown(hazard)),
        },
        fix: match (hazard.missing, hazard.is_on_one_queue(timeline)) {
            (MissingOrder::Transition(has, needs), _) => transition_fix(has, needs, transition.is_some()),
            (MissingOrder::Contents(before), _) => {
                let before = layout_name(before);
                format!("in the barrier of the transition, .oldLayout = VK_IMAGE_LAYOUT_{before}")
            }
            (MissingOrder::Flush, _) => {
                "vkFlushMappedMemoryRanges for these bytes before the command is submitted".to_owned()
            }
            (_, true) if hazard.after.stage == PRESENTATION => {
                "a semaphore that the last submission signals and the presentation waits for".to_owned()
            }
            (_, true) => barrier_code(group, transition, process.events.iter().any(is_new)),
            (_, false) => other_queue_fix(hazard),
        },
        is_possible: hazard.is_possible,
        count: hazard.count,
        also: others.iter().map(other).collect(),
    })
}

/// Returns what decides whether a possible hazard is one.
fn describe_unknown(hazard: &CommandHazard) -> &'static str {
    const FRAGMENT: u64 = 1 << 7;
    const VERTEX_INPUT: u64 = 1 << 2 | 3 << 36;
    const SHADERS: u64 = 0x78 | 3 << 19;
    const TESTS: u64 = 3 << 8;
    const COMPUTE: u64 = 1 << 11;
    let stages = hazard.before.stage | hazard.after.stage;
    match stages {
        _ if stages & FRAGMENT != 0 => "which fragments the draw has, and which bytes each accesses",
        _ if stages & SHADERS != 0 => {
            "which bytes the draw's vertices or primitives access: inputs or contents decide"
        }
        _ if stages & VERTEX_INPUT != 0 => "which vertices the draw reads",
        _ if stages & TESTS != 0 => "whether the draws write depth or stencil",
        _ if stages & COMPUTE != 0 => {
            "which bytes the dispatch accesses: its inputs are not recorded or not judged"
        }
        _ => "which bytes of the image or the region share memory",
    }
}

fn describe_missing(hazard: &CommandHazard, is_transition: bool) -> String {
    let (before, after) = (hazard.before, hazard.after);
    match hazard.missing {
        MissingOrder::Execution if hazard.conflict == Conflict::Host => {
            "the host wrote the bytes before it waited for the command".to_owned()
        }
        MissingOrder::Flush => {
            "the host wrote the bytes and did not flush them, and the memory is not coherent".to_owned()
        }
        MissingOrder::Ownership => {
            "no transfer of ownership: a release on the first queue family and an acquire on the second"
                .to_owned()
        }
        MissingOrder::Execution => {
            let stage = |stage: u64, is_transition: bool| match (stage, is_transition) {
                (0, _) | (_, true) => "the layout transition".to_owned(),
                (PRESENTATION, _) => "the presentation, which a semaphore orders".to_owned(),
                (stage, false) => stage_names(stage),
            };
            format!(
                "no execution dependency from {} to {}",
                stage(before.stage, false),
                stage(after.stage, is_transition)
            )
        }
        MissingOrder::Transition(has, needs) => {
            format!("a transition from {}, which the image has, to {}", layout_name(has), layout_name(needs))
        }
        MissingOrder::Contents(before) => format!(
            "the contents: the transition from UNDEFINED discards what was written in {}",
            layout_name(before)
        ),
        MissingOrder::Availability => format!(
            "the write is not made available: no source access mask contains {}",
            access_names(before.access)
        ),
        MissingOrder::Visibility => format!(
            "the write is not made visible: no destination access mask contains {} at {}",
            access_names(after.access),
            stage_names(after.stage)
        ),
    }
}

/// Returns what gives an image the layout that a command needs, or a transition the one that the image has.
fn transition_fix(has: i32, needs: i32, is_transition: bool) -> String {
    let [has, needs] = [has, needs].map(layout_name);
    if is_transition {
        return format!("in the transition, .oldLayout = VK_IMAGE_LAYOUT_{has}");
    }
    format!(
        "a barrier for the image with .oldLayout = VK_IMAGE_LAYOUT_{has}, .newLayout = VK_IMAGE_LAYOUT_{needs}, \
         and the stages and accesses of the commands around it"
    )
}

/// Returns what orders commands on two queues.
fn other_queue_fix(hazard: &CommandHazard) -> String {
    if hazard.missing == MissingOrder::Ownership {
        return "one barrier on each queue, with .srcQueueFamilyIndex and .dstQueueFamilyIndex of both"
            .to_owned();
    }
    let stage = stage_constants(hazard.after.stage, false);
    format!("a semaphore that the first submission signals and the second one waits for, at {stage}")
}

/// Returns names of bits as constants in C.
fn constants(kind: &str, names: &str) -> String {
    if names.is_empty() {
        return "0".to_owned();
    }
    let constant = |name: &str| match name.strip_suffix("_EXT") {
        Some(name) => format!("VK_{kind}_{name}_BIT_EXT"),
        None => format!("VK_{kind}_{name}_BIT"),
    };
    names.split(" | ").map(constant).collect::<Vec<_>>().join(" | ")
}

/// Returns stages as constants of `VkMemoryBarrier2`, or of `vkCmdPipelineBarrier`.
fn stage_constants(mask: u64, has_synchronization2: bool) -> String {
    const TRANSFERS: u64 = 0xf << 32;
    let transfer = if mask & TRANSFERS == 0 { 0 } else { 1 << 12 };
    match has_synchronization2 {
        true => constants("PIPELINE_STAGE_2", &stage_names(mask)),
        false => constants("PIPELINE_STAGE", &old_stage_names(mask as u32 | transfer)),
    }
}

/// Returns accesses as the same constants.
fn access_constants(mask: u64, has_synchronization2: bool) -> String {
    const NEW: u64 = 7 << 32;
    let old = |new: u64, old: u64| if mask & new == 0 { 0 } else { old };
    match has_synchronization2 {
        true => constants("ACCESS_2", &access_names(mask)),
        false => {
            constants("ACCESS", &access_names(mask & !NEW | old(3 << 32, 1 << 5) | old(1 << 34, 1 << 6)))
        }
    }
}

/// Returns the memory barrier between the commands of all hazards, as C code.
fn barrier_code(group: &[CommandHazard], transition: Option<&str>, has_synchronization2: bool) -> String {
    if group.iter().any(|hazard| hazard.conflict == Conflict::Host) {
        return "wait for the command's fence before the host writes".to_owned();
    }
    // A layout transition has no stage and is ordered by every stage; a write after a read needs execution order alone.
    let all = |part: &dyn Fn(&CommandHazard) -> u64| group.iter().map(part).fold(0, |all, part| all | part);
    let has_access = |hazard: &CommandHazard| hazard.conflict != Conflict::WriteAfterRead;
    let stages = |part: &dyn Fn(&CommandHazard) -> u64| stage_constants(all(part), has_synchronization2);
    let accesses = |part: &dyn Fn(&CommandHazard) -> u64| access_constants(all(part), has_synchronization2);
    let from = stages(&|hazard| if hazard.before.stage == 0 { 1 << 16 } else { hazard.before.stage });
    let from_access = accesses(&|hazard| if has_access(hazard) { hazard.before.access } else { 0 });
    if let Some(transition) = transition {
        let access = match from_access.as_str() {
            "0" => String::new(),
            access => format!(", .srcAccessMask |= {access}"),
        };
        return format!("in {transition}, .srcStageMask |= {from}{access}");
    }
    let to = stages(&|hazard| hazard.after.stage);
    let to_access = accesses(&|hazard| if has_access(hazard) { hazard.after.access } else { 0 });
    if has_synchronization2 {
        return format!(
            "VkMemoryBarrier2 barrier = {{ .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2, .srcStageMask = {from}, \
             .srcAccessMask = {from_access}, .dstStageMask = {to}, .dstAccessMask = {to_access} }};"
        );
    }
    format!(
        "vkCmdPipelineBarrier(commands, {from}, {to}, 0, 1, &(VkMemoryBarrier){{ VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, \
         {from_access}, {to_access} }}, 0, NULL, 0, NULL);"
    )
}
