//! Code in C that transfers the ownership of a resource between queue families, or gives an image another layout.

use ::record::hazard::{CommandHazard, MissingTransfer, ResourceId};
use ::record::journal::{Command, Event, RecordedBarrier, SyncScope};
use ::record::timeline::Timeline;
use device::mask_names::{aspect_names, layout_name};

use super::barrier_code::{BarrierKind, BarrierStatement, Scopes, constants, family_members};
use super::inventory::CommandNames;

/// `VK_IMAGE_LAYOUT_GENERAL`.
const GENERAL: i32 = 1;
/// All commands and their writes.
const ALL_WRITES: SyncScope = SyncScope(1 << 16, 1 << 16);

/// A change of the program that orders the commands of hazards.
#[derive(Default)]
pub struct Fix {
    /// Where the code belongs; empty if the code names it.
    pub place: String,
    /// The code, or a sentence.
    pub code: String,
}

/// The part of an image that a command uses.
#[derive(Clone, Copy)]
struct ImageUse {
    /// The layouts before and after the command.
    layouts: [i32; 2],
    /// First level, levels, first layer, layers.
    range: [u32; 4],
    aspects: u32,
}

/// The commands of a process, for the code that orders them.
pub struct FixContext<'a> {
    pub events: &'a [Event],
    pub names: &'a CommandNames<'a>,
    pub timeline: &'a Timeline<'a>,
    pub has_synchronization2: bool,
}

impl FixContext<'_> {
    fn barrier_of(&self, command: usize) -> Option<&RecordedBarrier> {
        match self.timeline.commands.get(command)?.command {
            Command::Barrier(barrier) => Some(barrier),
            _ => None,
        }
    }

    /// Returns the first part of an image that a command uses.
    fn image_use(&self, index: usize, image: ResourceId) -> ImageUse {
        let whole = [0, u32::MAX, 0, u32::MAX];
        let executed = self.timeline.commands.get(index);
        let found = executed.and_then(|executed| match executed.command {
            Command::Barrier(barrier) => Some((barrier.layouts, barrier.range, barrier.aspects)),
            Command::Dispatch { resources, .. } => {
                let used = resources.iter().find(|used| used.id() == Some(image))?;
                Some((used.layout.map(|layout| [layout; 2]), used.range, used.aspects))
            }
            Command::Other(other) => {
                let used =
                    other.accesses.iter().chain(executed.outputs).find(|used| used.id() == Some(image))?;
                Some((used.layout.map(|layout| [layout; 2]), used.range, used.aspects))
            }
            _ => None,
        });
        let (layouts, range, aspects) = found.unwrap_or((None, None, 1));
        ImageUse {
            layouts: layouts.unwrap_or([GENERAL; 2]),
            range: range.unwrap_or(whole),
            aspects: aspects.max(1),
        }
    }

    /// Returns the members of a barrier that name an image, its layouts and its parts.
    fn image_members(&self, resource: ResourceId, layouts: [i32; 2], used: ImageUse) -> String {
        let [old, new] = layouts.map(layout_name);
        let [level, levels, layer, layers] = used.range;
        let count =
            |count: u32, rest: &str| if count == u32::MAX { rest.to_owned() } else { count.to_string() };
        format!(
            ", .oldLayout = VK_IMAGE_LAYOUT_{old}, .newLayout = VK_IMAGE_LAYOUT_{new}, .image = {}, \
             .subresourceRange = {{ {}, {level}, {}, {layer}, {} }}",
            self.names.identifier(resource),
            constants("IMAGE_ASPECT", &aspect_names(used.aspects)),
            count(levels, "VK_REMAINING_MIP_LEVELS"),
            count(layers, "VK_REMAINING_ARRAY_LAYERS"),
        )
    }

    fn barrier(&self, scopes: Scopes, kind: BarrierKind, resource: String) -> String {
        let statement = BarrierStatement { scopes, is_by_region: false, kind, resources: vec![resource] };
        statement.to_code(self.has_synchronization2)
    }

    /// Returns the barrier that gives an image the layout that a command needs.
    pub fn transition_code(&self, hazard: &CommandHazard, layouts: [i32; 2]) -> String {
        let used = self.image_use(hazard.second.unwrap_or(hazard.first), hazard.resource);
        // Any earlier command may use the image.
        let scopes = Scopes { from: ALL_WRITES, to: SyncScope(hazard.after.stage, hazard.after.access) };
        let members = family_members(None) + &self.image_members(hazard.resource, layouts, used);
        self.barrier(scopes, BarrierKind::Image, members)
    }

    fn family_of(&self, command: usize) -> Option<u32> {
        let of = self.timeline.commands.get(command)?.queue;
        self.events.iter().find_map(|event| match event {
            Event::Queue { queue, family, .. } => (*queue == of).then_some(*family),
            _ => None,
        })
    }

    /// Returns the halves of a transfer that are missing or wrong.
    pub fn ownership_fix(&self, hazard: &CommandHazard, missing: MissingTransfer) -> Fix {
        let (first, second) = (hazard.first, hazard.second.unwrap_or(hazard.first));
        let halves =
            [first, second].map(|command| self.barrier_of(command).filter(|one| one.transfer().is_some()));
        let own = [first, second].map(|command| self.family_of(command).unwrap_or_default());
        // Families that differ in the halves are those of the queues, except for another API.
        let named = halves[0].or(halves[1]).and_then(RecordedBarrier::transfer).filter(|_| own[0] == own[1]);
        let families = match named.unwrap_or(own) {
            // What another API returns was released to it.
            [from, to] if missing == MissingTransfer::Release && from != own[0] => [to, from],
            families => families,
        };
        let (kind, members) = match hazard.resource {
            ResourceId::Image(_) => {
                let uses = [first, second].map(|command| self.image_use(command, hazard.resource));
                // A transfer has both layouts; another command, the one that it leaves or expects.
                let known = halves[1].or(halves[0]).and_then(|half| half.layouts);
                let layouts = known.unwrap_or([uses[0].layouts[1], uses[1].layouts[0]]);
                (BarrierKind::Image, self.image_members(hazard.resource, layouts, uses[1]))
            }
            ResourceId::Buffer(_) => {
                let (from, to) = hazard.bytes.first().copied().unwrap_or((0, u64::MAX));
                let (buffer, size) = (self.names.identifier(hazard.resource), to - from);
                (BarrierKind::Buffer, format!(", .buffer = {buffer}, .offset = {from}, .size = {size}"))
            }
        };
        let members = family_members(Some(families)) + &members;
        // Without `synchronization2`, a scope has at least one stage.
        let [top, bottom] =
            if self.has_synchronization2 { [0, 0] } else { [1, 1 << 13] }.map(|stage| SyncScope(stage, 0));
        let release = Scopes { from: ALL_WRITES, to: bottom };
        let acquire = Scopes { from: top, to: SyncScope(hazard.after.stage, hazard.after.access) };
        let release = self.barrier(release, kind, members.clone());
        let acquire = self.barrier(acquire, kind, members);
        let (place, code) = match missing {
            MissingTransfer::Release => ("after the first command, on its queue", release),
            MissingTransfer::Acquire => ("before the second command, on its queue", acquire),
            MissingTransfer::Both => (
                "the release after the first command, the acquire before the second one",
                release + " " + &acquire,
            ),
            MissingTransfer::EqualHalves => {
                ("in place of the release and of the acquire", release + " " + &acquire)
            }
            MissingTransfer::Order => {
                ("between them", "a semaphore that leads from the release to the acquire".to_owned())
            }
        };
        Fix { place: place.to_owned(), code }
    }
}
