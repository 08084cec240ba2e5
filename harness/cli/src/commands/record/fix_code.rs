//! Code in C that orders the commands of a hazard: barriers, and dependencies between subpasses.
//!
//! A barrier for buffers has the bytes that lack order. Inside of a render pass no barrier orders subpasses, so the code is an entry of
//! `pDependencies` there (Vulkan specification, "Render Pass" and `VkSubpassDependency`).

use std::collections::BTreeMap;

use ::record::hazard::{ByteRange, CommandHazard, Conflict, MissingOrder, ResourceId, join_ranges};
use ::record::journal::{Command, EXTERNAL_SUBPASS, Event, ProcessJournal, SubpassDependency, SyncScope};
use ::record::timeline::{SubpassId, Timeline};
use device::mask_names::layout_name;

use super::barrier_code::{
    BarrierKind, BarrierStatement, Scopes, access_constants, family_members, stage_constants,
};
use super::inventory::CommandNames;
use super::transfer_code::{Fix, FixContext};

/// The stage of presentations in recordings.
pub const PRESENTATION: u64 = 1 << 63;
/// `VK_PIPELINE_STAGE_ALL_COMMANDS_BIT`.
const ALL_COMMANDS: u64 = 1 << 16;
/// Fragment shader, tests of depth and stencil, and color output: the stages that may be ordered by region.
const FRAMEBUFFER_STAGES: u64 = 0xf << 7;
/// Reads of input attachments.
const INPUT_READ: u64 = 1 << 4;
/// Reads and writes of color, depth and stencil attachments.
const ATTACHMENTS: u64 = 0xf << 7;
/// Their writes.
const ATTACHMENT_WRITES: u64 = 0x500;
/// Upper bound on the ranges of a barrier for buffers.
const MAX_RANGES: usize = 4;

/// Where two commands are.
enum CommandPlaces {
    /// The second one is a layout transition of a barrier.
    Transition,
    /// A dependency of a render pass orders them.
    Subpasses(SubpassDependency),
    SameSubpass(SubpassId),
    /// At least one of them is in a render pass, which the other one is not in.
    RenderPass,
    Outside,
}

/// Chooses what orders hazards that one change can order.
pub fn choose_fix(
    process: &ProcessJournal,
    names: &CommandNames<'_>,
    timeline: &Timeline<'_>,
    group: &[CommandHazard],
) -> Fix {
    let fix = |place: &str, code: String| Fix { place: place.to_owned(), code };
    let Some(hazard) = group.first() else { return Fix::default() };
    let is_new = |event: &Event| matches!(event, Event::Device { has_synchronization2: true, .. });
    let has_synchronization2 = process.events.iter().any(is_new);
    let context = FixContext { events: &process.events, names, timeline, has_synchronization2 };
    let scopes = joined_scopes(group);
    let places = command_places(timeline, hazard);
    match (hazard.missing, hazard.is_on_one_queue(timeline)) {
        (MissingOrder::Transition(has, needs), _) => match places {
            CommandPlaces::Transition => {
                fix("in the transition", format!(".oldLayout = VK_IMAGE_LAYOUT_{}", layout_name(has)))
            }
            _ => {
                let code = context.transition_code(hazard, [has, needs]);
                fix("before the last command and outside of a render pass", code)
            }
        },
        (MissingOrder::Ownership(missing), _) => context.ownership_fix(hazard, missing),
        (MissingOrder::Contents(before), _) => {
            let before = layout_name(before);
            fix("in the barrier of the transition", format!(".oldLayout = VK_IMAGE_LAYOUT_{before}"))
        }
        (MissingOrder::Invalidation, _) => {
            let code = "vkInvalidateMappedMemoryRanges for these bytes before the host reads them";
            fix("after the wait for the command", code.to_owned())
        }
        (MissingOrder::Flush, _) => {
            let code = "vkFlushMappedMemoryRanges for these bytes before the command is submitted";
            fix("between them", code.to_owned())
        }
        (MissingOrder::Execution, true) if hazard.conflict == Conflict::Host => {
            fix("between them", "wait for the command's fence before the host accesses the bytes".to_owned())
        }
        (_, true) if hazard.conflict == Conflict::Host => {
            let place = "after the command and before the host waits for it";
            fix(place, barrier_code(names, group, scopes, has_synchronization2))
        }
        (_, true) if hazard.after.stage == PRESENTATION => {
            let code = "a semaphore that the last submission signals and the presentation waits for";
            fix("between them", code.to_owned())
        }
        (_, false) => {
            let stage = stage_constants(scopes.to.0, false);
            let code = format!(
                "a semaphore that the first submission signals and the second one waits for, at {stage}"
            );
            fix("between them", code)
        }
        (_, true) => match places {
            CommandPlaces::Transition => {
                fix("in the barrier of the transition", transition_scope(scopes.from, has_synchronization2))
            }
            CommandPlaces::Subpasses(subpasses) => {
                let scopes = dependency_scopes(timeline, hazard, scopes);
                fix("in VkRenderPassCreateInfo::pDependencies", subpass_dependency(subpasses, scopes))
            }
            CommandPlaces::SameSubpass(id) => subpass_barrier(id, scopes, has_synchronization2),
            places @ (CommandPlaces::RenderPass | CommandPlaces::Outside) => {
                let place = match places {
                    CommandPlaces::RenderPass => "between them and outside of the render pass",
                    _ => "between them",
                };
                fix(place, barrier_code(names, group, scopes, has_synchronization2))
            }
        },
    }
}

/// Returns the stages and accesses of all hazards; a write after a read needs execution order alone.
fn joined_scopes(group: &[CommandHazard]) -> Scopes {
    let all = |part: &dyn Fn(&CommandHazard) -> u64| group.iter().map(part).fold(0, |all, part| all | part);
    let has_access = |hazard: &CommandHazard| hazard.conflict != Conflict::WriteAfterRead;
    // A layout transition has no stage and is ordered by every stage.
    let stage = |stage: u64| if stage == 0 { ALL_COMMANDS } else { stage };
    Scopes {
        from: SyncScope(
            all(&|hazard| stage(hazard.before.stage)),
            all(&|hazard| if has_access(hazard) { hazard.before.access } else { 0 }),
        ),
        to: SyncScope(
            all(&|hazard| stage(hazard.after.stage)),
            all(&|hazard| if has_access(hazard) { hazard.after.access } else { 0 }),
        ),
    }
}

fn dependency_of(timeline: &Timeline<'_>, command: usize) -> Option<(SubpassDependency, Scopes)> {
    match timeline.commands.get(command)?.command {
        Command::Barrier(barrier) => {
            Some((barrier.subpasses?, Scopes { from: barrier.from, to: barrier.to }))
        }
        _ => None,
    }
}

fn command_places(timeline: &Timeline<'_>, hazard: &CommandHazard) -> CommandPlaces {
    let second = hazard.second.unwrap_or(hazard.first);
    // The transitions of a render pass.
    if let Some((subpasses, _)) =
        dependency_of(timeline, second).or_else(|| dependency_of(timeline, hazard.first))
    {
        return CommandPlaces::Subpasses(subpasses);
    }
    let executed = |command: usize| timeline.commands.get(command);
    if executed(second).is_some_and(|executed| matches!(executed.command, Command::Barrier { .. })) {
        return CommandPlaces::Transition;
    }
    let subpass = |command: usize| executed(command).and_then(|executed| executed.subpass);
    match (subpass(hazard.first), subpass(second)) {
        (None, None) => CommandPlaces::Outside,
        (Some(one), Some(other)) if one == other => CommandPlaces::SameSubpass(one),
        (Some(one), Some(other)) if one.pass == other.pass => {
            let subpasses = SubpassDependency { from: one.number, to: other.number, is_declared: false };
            CommandPlaces::Subpasses(subpasses)
        }
        _ => CommandPlaces::RenderPass,
    }
}

/// Returns the scopes of a dependency between subpasses; those of a transition in it have the accesses around the transition.
fn dependency_scopes(timeline: &Timeline<'_>, hazard: &CommandHazard, scopes: Scopes) -> Scopes {
    // An implicit dependency, which a declared one replaces, has all accesses to attachments.
    let attachments = |access: u64| SyncScope(FRAMEBUFFER_STAGES, access);
    let second = hazard.second.and_then(|second| dependency_of(timeline, second));
    let first = dependency_of(timeline, hazard.first);
    let from = match first {
        Some((SubpassDependency { is_declared: true, .. }, declared)) => declared.from,
        Some(_) => attachments(ATTACHMENT_WRITES),
        None => scopes.from,
    };
    let to = match second {
        Some((SubpassDependency { is_declared: true, .. }, declared)) => declared.to,
        Some(_) => attachments(INPUT_READ | ATTACHMENTS),
        None => scopes.to,
    };
    Scopes { from, to }
}

/// Returns true if all accesses are those of one pixel to attachments.
fn is_by_region(scopes: Scopes) -> bool {
    let is_framebuffer = |SyncScope(stages, accesses): SyncScope| {
        stages & !FRAMEBUFFER_STAGES == 0 && accesses & !(INPUT_READ | ATTACHMENTS) == 0
    };
    is_framebuffer(scopes.from) && is_framebuffer(scopes.to)
}

/// Returns an entry of the dependencies of a render pass.
fn subpass_dependency(subpasses: SubpassDependency, scopes: Scopes) -> String {
    let number = |number: u32| match number {
        EXTERNAL_SUBPASS => "VK_SUBPASS_EXTERNAL".to_owned(),
        number => number.to_string(),
    };
    let is_external = [subpasses.from, subpasses.to].contains(&EXTERNAL_SUBPASS);
    let flags = match !is_external && is_by_region(scopes) {
        true => "VK_DEPENDENCY_BY_REGION_BIT",
        false => "0",
    };
    let Scopes { from, to } = scopes;
    format!(
        "VkSubpassDependency dependency = {{ .srcSubpass = {}, .dstSubpass = {}, .srcStageMask = {}, .dstStageMask = {}, \
         .srcAccessMask = {}, .dstAccessMask = {}, .dependencyFlags = {flags} }};",
        number(subpasses.from),
        number(subpasses.to),
        stage_constants(from.0, false),
        stage_constants(to.0, false),
        access_constants(from.1, false),
        access_constants(to.1, false),
    )
}

/// Returns what orders commands of one subpass.
fn subpass_barrier(id: SubpassId, scopes: Scopes, has_synchronization2: bool) -> Fix {
    let is_by_region = is_by_region(scopes);
    let barrier = memory_barrier(scopes, has_synchronization2, is_by_region);
    let fix = |place: &str, code: String| Fix { place: place.to_owned(), code };
    if scopes.from.0 & FRAMEBUFFER_STAGES != 0 && !is_by_region {
        return fix("between two render passes, of which each has one of the commands", barrier);
    }
    if id.is_dynamic {
        return fix("between them, with the feature dynamicRenderingLocalRead", barrier);
    }
    let subpasses = SubpassDependency { from: id.number, to: id.number, is_declared: false };
    let code = format!("{} {barrier}", subpass_dependency(subpasses, scopes));
    fix(
        "an entry of VkRenderPassCreateInfo::pDependencies and, between them, the barrier that it permits",
        code,
    )
}

/// Returns the change of the first scope of the barrier that has a transition.
fn transition_scope(from: SyncScope, has_synchronization2: bool) -> String {
    let stages = stage_constants(from.0, has_synchronization2);
    let access = match access_constants(from.1, has_synchronization2).as_str() {
        "0" => String::new(),
        access => format!(" barrier.srcAccessMask |= {access};"),
    };
    let holder = if has_synchronization2 { "barrier." } else { "" };
    format!("{holder}srcStageMask |= {stages};{access}")
}

/// Returns the barrier between the commands of all hazards: for the bytes of buffers, or for all memory.
fn barrier_code(
    names: &CommandNames<'_>,
    group: &[CommandHazard],
    scopes: Scopes,
    has_synchronization2: bool,
) -> String {
    let mut buffers: BTreeMap<ResourceId, Vec<ByteRange>> = BTreeMap::new();
    for hazard in group {
        buffers.entry(hazard.resource).or_default().extend(&hazard.bytes);
    }
    buffers.values_mut().for_each(join_ranges);
    let has_access = scopes.from.1 != 0 || scopes.to.1 != 0;
    let is_buffer = |hazard: &CommandHazard| !hazard.is_aliased && !hazard.bytes.is_empty();
    let ranges: Vec<(String, ByteRange)> = buffers
        .into_iter()
        .flat_map(|(id, ranges)| ranges.into_iter().map(move |range| (names.identifier(id), range)))
        .collect();
    if !has_access || !group.iter().all(is_buffer) || ranges.len() > MAX_RANGES {
        return memory_barrier(scopes, has_synchronization2, false);
    }
    let entry = |(buffer, (from, to)): &(String, ByteRange)| {
        let size = to.saturating_sub(*from);
        family_members(None) + &format!(", .buffer = {buffer}, .offset = {from}, .size = {size}")
    };
    let resources = ranges.iter().map(entry).collect();
    BarrierStatement { scopes, is_by_region: false, kind: BarrierKind::Buffer, resources }
        .to_code(has_synchronization2)
}

/// Returns a barrier for all memory.
fn memory_barrier(scopes: Scopes, has_synchronization2: bool, is_by_region: bool) -> String {
    let (kind, resources) = (BarrierKind::Memory, vec![String::new()]);
    BarrierStatement { scopes, is_by_region, kind, resources }.to_code(has_synchronization2)
}
