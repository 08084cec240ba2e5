//! Layouts of images: the layout of each level and layer after the commands so far, and whether a transition discarded its contents.
//!
//! Vulkan specification, "Image Layouts" and "Image Layout Transitions". A barrier with equal layouts ignores both. Sound for reports: the
//! layout of a part is unknown after a report, for images that another API may use, and where a layout is for the other aspect alone.

use std::collections::HashMap;

use crate::bindings::MemoryBindings;
use crate::hazard::MissingOrder;
use crate::scopes::ImagePart;

/// The layout of an image that is not known.
pub(crate) const UNKNOWN: i32 = -1;

// Values of `VkImageLayout`.
pub(crate) const UNDEFINED: i32 = 0;
const COLOR_ATTACHMENT_OPTIMAL: i32 = 2;
const DEPTH_STENCIL_ATTACHMENT_OPTIMAL: i32 = 3;
const DEPTH_STENCIL_READ_ONLY_OPTIMAL: i32 = 4;
const SHADER_READ_ONLY_OPTIMAL: i32 = 5;
/// An image is presented in it, too.
const SHARED_PRESENT: i32 = 1_000_111_000;
const DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL: i32 = 1_000_117_000;
const DEPTH_ATTACHMENT_STENCIL_READ_ONLY_OPTIMAL: i32 = 1_000_117_001;
const DEPTH_ATTACHMENT_OPTIMAL: i32 = 1_000_241_000;
const DEPTH_READ_ONLY_OPTIMAL: i32 = 1_000_241_001;
const STENCIL_ATTACHMENT_OPTIMAL: i32 = 1_000_241_002;
const STENCIL_READ_ONLY_OPTIMAL: i32 = 1_000_241_003;
const READ_ONLY_OPTIMAL: i32 = 1_000_314_000;
const ATTACHMENT_OPTIMAL: i32 = 1_000_314_001;

/// `VkImageAspectFlagBits`.
const DEPTH: u32 = 2;
const STENCIL: u32 = 4;

/// A part of an image, by the image's id.
pub(crate) type PartId = (u64, ImagePart);

/// The state of a part.
#[derive(Clone, Copy)]
struct PartState {
    layout: i32,
    /// The last transition.
    transition: Option<usize>,
    is_written: bool,
    /// The layout before a transition that discarded written contents.
    discarded: Option<i32>,
}

/// A missing transition, and the last one before it.
pub(crate) type LayoutError = (Option<usize>, MissingOrder);

/// The layouts of all images.
#[derive(Default)]
pub(crate) struct ImageLayouts {
    parts: HashMap<PartId, PartState>,
}

/// Returns one layout of an aspect for all that have the same meaning ("Image Layout Matching Rules").
fn unify_layout(layout: i32, aspect: u32) -> i32 {
    let (is_depth, is_stencil) = (aspect == DEPTH, aspect == STENCIL);
    match layout {
        ATTACHMENT_OPTIMAL if !is_depth && !is_stencil => COLOR_ATTACHMENT_OPTIMAL,
        READ_ONLY_OPTIMAL if !is_depth && !is_stencil => SHADER_READ_ONLY_OPTIMAL,
        ATTACHMENT_OPTIMAL => DEPTH_STENCIL_ATTACHMENT_OPTIMAL,
        READ_ONLY_OPTIMAL => DEPTH_STENCIL_READ_ONLY_OPTIMAL,
        DEPTH_ATTACHMENT_OPTIMAL | DEPTH_ATTACHMENT_STENCIL_READ_ONLY_OPTIMAL if is_depth => {
            DEPTH_STENCIL_ATTACHMENT_OPTIMAL
        }
        DEPTH_READ_ONLY_OPTIMAL | DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL if is_depth => {
            DEPTH_STENCIL_READ_ONLY_OPTIMAL
        }
        STENCIL_ATTACHMENT_OPTIMAL | DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL if is_stencil => {
            DEPTH_STENCIL_ATTACHMENT_OPTIMAL
        }
        STENCIL_READ_ONLY_OPTIMAL | DEPTH_ATTACHMENT_STENCIL_READ_ONLY_OPTIMAL if is_stencil => {
            DEPTH_STENCIL_READ_ONLY_OPTIMAL
        }
        // The layout of another aspect.
        DEPTH_ATTACHMENT_OPTIMAL | DEPTH_READ_ONLY_OPTIMAL => UNKNOWN,
        STENCIL_ATTACHMENT_OPTIMAL | STENCIL_READ_ONLY_OPTIMAL | SHARED_PRESENT => UNKNOWN,
        _ => layout,
    }
}

impl ImageLayouts {
    fn state(&mut self, bindings: &MemoryBindings, part: PartId) -> &mut PartState {
        let layout = bindings.images.get(&part.0).map_or(UNKNOWN, |image| image.layout);
        self.parts.entry(part).or_insert(PartState {
            layout,
            transition: None,
            is_written: false,
            discarded: None,
        })
    }

    /// Changes the layout of a part. Returns what is missing if it has another one than the old one.
    pub fn change(
        &mut self,
        bindings: &MemoryBindings,
        part: PartId,
        command: usize,
        [old, new]: [i32; 2],
    ) -> Option<LayoutError> {
        let error = if old == UNDEFINED { None } else { self.check(bindings, part, old) };
        let state = self.state(bindings, part);
        state.discarded = (old == UNDEFINED && state.is_written).then_some(state.layout);
        (state.layout, state.transition) = (new, Some(command));
        error
    }

    /// Sets the layout of a part that another API or the host has changed.
    pub fn set(&mut self, bindings: &MemoryBindings, part: PartId, layout: i32) {
        self.state(bindings, part).layout = layout;
    }

    /// Adds an access in a layout. Returns what is missing for it.
    pub fn access(
        &mut self,
        bindings: &MemoryBindings,
        part: PartId,
        layout: i32,
        is_write: bool,
    ) -> Option<LayoutError> {
        let error = self.check(bindings, part, layout);
        let state = self.state(bindings, part);
        let discarded = state.discarded.filter(|before| !is_write && *before != UNKNOWN);
        state.is_written |= is_write;
        state.discarded = state.discarded.filter(|_| !is_write && discarded.is_none());
        error.or_else(|| discarded.map(|before| (state.transition, MissingOrder::Contents(before))))
    }

    fn check(&mut self, bindings: &MemoryBindings, part: PartId, expected: i32) -> Option<LayoutError> {
        let state = self.state(bindings, part);
        let [has, needs] = [state.layout, expected].map(|one| unify_layout(one, part.1.aspect));
        if has == needs || [has, needs].contains(&UNKNOWN) {
            return None;
        }
        let error = (state.transition, MissingOrder::Transition(state.layout, expected));
        state.layout = UNKNOWN;
        Some(error)
    }
}
