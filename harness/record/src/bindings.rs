//! Where resources are in memory, and the queue families that own them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::hazard::{ByteRange, ResourceId};
use crate::journal::{DispatchResource, Event};
use crate::scopes::{ImagePart, Location};

/// The properties of an image.
#[derive(Clone, Copy)]
pub(crate) struct KnownImage {
    pub format: i32,
    pub size: [u32; 3],
    pub levels: u32,
    pub layers: u32,
    /// `VkImageAspectFlags` that are accessed separately.
    pub aspects: u32,
    /// The layout after its creation.
    pub layout: i32,
}

/// The memory of buffers and images, and who owns them.
#[derive(Default)]
pub struct MemoryBindings {
    buffers: HashMap<u64, (Location, u64)>,
    pub(crate) sizes: HashMap<u64, u64>,
    pub(crate) images: HashMap<u64, KnownImage>,
    /// The bound ranges of images that share memory with another resource.
    pub(crate) aliased_images: HashMap<u64, (u64, ByteRange)>,
    shared: BTreeSet<ResourceId>,
    /// The resources that share memory with a resource.
    aliases: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
    pub(crate) families: HashMap<u64, u32>,
    /// Memory that the host has to flush.
    incoherent: BTreeSet<u64>,
    /// Memory that the program maps.
    mapped: BTreeSet<u64>,
    /// True if the host may have written memory unseen.
    pub(crate) has_unchecked: bool,
}

impl MemoryBindings {
    /// Collects the bindings of a process.
    pub fn from_events(events: &[Event]) -> MemoryBindings {
        let mut bindings = MemoryBindings::default();
        let (mut ranges, mut images) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                Event::Buffer { buffer, size, is_exclusive } => {
                    bindings.sizes.insert(*buffer, *size);
                    bindings.shared.extend((!is_exclusive).then_some(ResourceId::Buffer(*buffer)));
                }
                Event::Image { image, format, size, levels, layers, aspects, layout, is_exclusive } => {
                    let (format, size, levels, layers) = (*format, *size, *levels, *layers);
                    let (aspects, layout) = (*aspects, *layout);
                    let known = KnownImage { format, size, levels, layers, aspects, layout };
                    bindings.images.insert(*image, known);
                    bindings.shared.extend((!is_exclusive).then_some(ResourceId::Image(*image)));
                }
                Event::Bind { buffer: Some(buffer), memory, offset, .. } => {
                    bindings.buffers.insert(*buffer, (Location::Memory(*memory), *offset));
                    let size = bindings.sizes.get(buffer).copied().unwrap_or(0);
                    ranges.push((
                        *memory,
                        (*offset, offset.saturating_add(size)),
                        ResourceId::Buffer(*buffer),
                    ));
                }
                Event::Bind { image: Some(image), memory, offset, size, .. } => {
                    let range = (*offset, offset.saturating_add(size.unwrap_or(0)));
                    ranges.push((*memory, range, ResourceId::Image(*image)));
                    images.push((*image, *memory, range));
                }
                Event::UncheckedMapping { .. } => bindings.has_unchecked = true,
                Event::Map { memory, .. } => _ = bindings.mapped.insert(*memory),
                Event::Memory { memory, is_coherent, .. } => {
                    bindings.incoherent.extend((!is_coherent).then_some(*memory));
                }
                Event::Queue { queue, family, .. } => _ = bindings.families.insert(*queue, *family),
                _ => {}
            }
        }
        ranges.sort_unstable();
        // The ranges that end after the start of the next one.
        let mut open: Vec<(u64, ByteRange, ResourceId)> = Vec::new();
        for (memory, range, id) in ranges {
            open.retain(|(of, other, _)| *of == memory && other.1 > range.0);
            for (_, _, other) in open.iter().filter(|(_, _, other)| *other != id) {
                bindings.aliases.entry(id).or_default().insert(*other);
                bindings.aliases.entry(*other).or_default().insert(id);
            }
            open.push((memory, range, id));
        }
        for (image, memory, range) in images {
            if bindings.aliases.contains_key(&ResourceId::Image(image)) {
                bindings.aliased_images.insert(image, (memory, range));
            }
        }
        bindings
    }

    /// Returns the resources that share memory with a resource.
    pub(crate) fn aliases_of(&self, resource: ResourceId) -> impl Iterator<Item = ResourceId> {
        self.aliases.get(&resource).into_iter().flatten().copied()
    }

    /// Returns the buffers, and the images that share memory with others, with bytes in ranges of a memory.
    pub(crate) fn resources_in(&self, memory: u64, ranges: &[ByteRange]) -> impl Iterator<Item = ResourceId> {
        let buffers = self.buffers.iter().map(|(buffer, (location, start))| {
            let end = start.saturating_add(self.sizes.get(buffer).copied().unwrap_or(u64::MAX));
            (ResourceId::Buffer(*buffer), *location, (*start, end))
        });
        let images = self.aliased_images.iter();
        let images =
            images.map(|(image, (of, range))| (ResourceId::Image(*image), Location::Memory(*of), *range));
        let is_in = move |(id, location, (start, end)): (ResourceId, Location, ByteRange)| {
            let overlaps = |range: &ByteRange| range.0 < end && start < range.1;
            (location == Location::Memory(memory) && ranges.iter().any(overlaps)).then_some(id)
        };
        buffers.chain(images).filter_map(is_in)
    }

    /// Returns true if two resources of a dispatch share bytes.
    pub fn is_overlap(&self, one: &DispatchResource, other: &DispatchResource) -> bool {
        let is_common = |[first, count]: [u32; 2], [start, length]: [u32; 2]| {
            first < start.saturating_add(length) && start < first.saturating_add(count)
        };
        match (one.buffer.zip(other.buffer), one.range.zip(other.range)) {
            (Some((a, b)), _) => {
                let ((location, base), (of, start)) = (self.buffer_location(a), self.buffer_location(b));
                let (from, to) = (base.saturating_add(one.offset), start.saturating_add(other.offset));
                location == of && from < to.saturating_add(other.size) && to < from.saturating_add(one.size)
            }
            (None, Some(([a, b, c, d], [e, f, g, h]))) => {
                one.image == other.image && is_common([a, b], [e, f]) && is_common([c, d], [g, h])
            }
            (None, None) => false,
        }
    }

    pub(crate) fn buffer_location(&self, buffer: u64) -> (Location, u64) {
        self.buffers.get(&buffer).copied().unwrap_or((Location::Buffer(buffer), 0))
    }

    /// Returns the parts of an image with some aspects, by level, layer and aspect.
    pub(crate) fn parts_of(&self, image: u64, range: [u32; 4], aspects: u32) -> Vec<ImagePart> {
        /// The colour aspect of an image with planes is all of them.
        const COLOR: u32 = 1;
        let known = self.images.get(&image);
        let (levels, layers) =
            known.map_or((1, 1), |known| (known.levels.min(32), known.layers.min(1 << 16)));
        let all = known.map_or(COLOR, |known| known.aspects);
        let used = if aspects & COLOR == 0 && aspects & all != 0 { aspects & all } else { all };
        let used = (0..u32::BITS).map(|bit| 1 << bit).filter(|aspect| used & aspect != 0);
        let [level, level_count, layer, layer_count] = range;
        let mut parts = Vec::new();
        for level in (level..levels).take(level_count as usize) {
            for layer in (layer..layers).take(layer_count as usize) {
                parts.extend(used.clone().map(|aspect| ImagePart { level, layer, aspect }));
            }
        }
        parts
    }

    /// Returns true if an image has one level, layer and aspect.
    pub(crate) fn has_one_part(&self, image: u64) -> bool {
        let is_one =
            |known: &KnownImage| (known.levels, known.layers, known.aspects.count_ones()) == (1, 1, 1);
        self.images.get(&image).is_some_and(is_one)
    }

    pub(crate) fn is_mapped(&self, memory: u64) -> bool {
        self.mapped.contains(&memory)
    }

    pub(crate) fn is_incoherent(&self, memory: u64) -> bool {
        self.incoherent.contains(&memory)
    }

    /// Returns the texels of a level; none if the format's blocks are not texels.
    pub(crate) fn texels_of_level(&self, image: u64, level: u32) -> Option<u64> {
        let KnownImage { format, size, .. } = self.images.get(&image)?;
        let is_compressed = (131..=184).contains(format) || *format >= 1_000_000_000;
        (!is_compressed).then(|| {
            let sides = size.iter().map(|side| u64::from((side >> level.min(31)).max(1)));
            sides.fold(1, u64::saturating_mul)
        })
    }

    /// Returns the queue family that owns a resource during an access; none if all do.
    pub(crate) fn owner(&self, resource: ResourceId, queue: u64) -> Option<u32> {
        self.families.get(&queue).copied().filter(|_| !self.shared.contains(&resource))
    }
}
