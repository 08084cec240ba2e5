//! Hazards as lines of output.

use ::record::hazard::{CommandHazard, Conflict, MissingOrder, MissingTransfer};
use ::record::journal::{Command, ProcessJournal};
use ::record::redundancy::RedundantBarrier;
use ::record::timeline::Timeline;
use device::mask_names::{access_names, layout_name, stage_names};
use results::wire::{
    HAZARD_SCHEMA, HazardCommand, HazardKind, HazardLine, OtherHazard, RedundantBarrierRecord,
};

use super::fix_code::{PRESENTATION, choose_fix};
use super::inventory::CommandNames;
use super::transfer_code::Fix;

/// `VK_ACCESS_2_HOST_READ_BIT`.
const HOST_READ: u64 = 1 << 13;

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
    let is_transition = second.is_some_and(|executed| matches!(executed.command, Command::Barrier { .. }));
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
        Conflict::Ownership => HazardKind::Ownership,
    };
    let resource = |hazard: &CommandHazard| names.describe_resource(hazard.resource);
    let other = |hazard: &CommandHazard| OtherHazard {
        kind: kind(hazard),
        commands: commands(hazard),
        resource: resource(hazard),
    };
    let Fix { place, code } = choose_fix(process, names, timeline, group);
    Some(HazardLine {
        schema: HAZARD_SCHEMA.to_owned(),
        process: process.process,
        kind: kind(hazard),
        commands: commands(hazard),
        resource: resource(hazard),
        bytes: hazard.bytes.first().zip(hazard.bytes.last()).map(|((from, _), (_, to))| [*from, *to]),
        missing: match (describe_missing(hazard, is_transition), hazard.is_possible) {
            (missing, false) => missing,
            (missing, true) => format!("{missing}; unknown: {}", describe_unknown(hazard)),
        },
        place,
        fix: code,
        is_possible: hazard.is_possible,
        is_information: hazard.is_information,
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
    if hazard.after.access == HOST_READ {
        return "which bytes of mapped memory the host reads";
    }
    if hazard.conflict == Conflict::Ownership {
        return "whether another API wrote the contents meanwhile";
    }
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

fn describe_transfer(missing: MissingTransfer) -> String {
    let (part, why) = match missing {
        MissingTransfer::Both => {
            ("transfer", "a release on the first queue family and an acquire on the second")
        }
        MissingTransfer::Acquire => {
            ("acquire", "the first command releases the contents, and no barrier acquires them")
        }
        MissingTransfer::Release => ("release", "no barrier releases what the second command acquires"),
        MissingTransfer::EqualHalves => {
            ("transfer", "the families or the layouts of release and acquire differ")
        }
        MissingTransfer::Order => {
            ("order in the transfer", "no semaphore leads from the release to the acquire")
        }
    };
    format!("no {part} of ownership: {why}")
}

fn describe_missing(hazard: &CommandHazard, is_transition: bool) -> String {
    let (before, after) = (hazard.before, hazard.after);
    match hazard.missing {
        MissingOrder::Execution if after.access == HOST_READ => {
            "the host invalidated or unmapped the bytes before it waited for the command".to_owned()
        }
        MissingOrder::Execution if hazard.conflict == Conflict::Host => {
            "the host wrote the bytes before it waited for the command".to_owned()
        }
        MissingOrder::Flush => {
            "the host wrote the bytes and did not flush them, and the memory is not coherent".to_owned()
        }
        MissingOrder::Invalidation => {
            "the host did not invalidate the bytes, and the memory is not coherent".to_owned()
        }
        MissingOrder::Ownership(transfer) => describe_transfer(transfer),
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
