//! Fragment shader interlock: the turn order of fragments that cover one pixel (Vulkan specification,
//! "Fragment Shader Interlock").
//!
//! A wave contains at most one fragment of a pixel, so none of its lanes waits for another one. If sections
//! are unordered, all lanes of a wave enter together; otherwise two waves could deadlock.

use std::collections::HashMap;

use super::Machine;
use crate::fault::Fault;
use crate::program::{MemoryOpKind, Program};
use crate::random::lanes_in_mask;

/// The interlock state of the draws of a submission.
#[derive(Clone, Debug, Default)]
pub(crate) struct InterlockQueue {
    /// The pixel of each invocation; helpers have none and are not waited for.
    pixels: HashMap<u32, usize>,
    /// By pixel: the fragments whose section has not ended, in primitive order, and the one inside.
    fragments: Vec<(Vec<u32>, Option<u32>)>,
}

impl InterlockQueue {
    /// Adds the fragments of a draw, each with its pixel, in primitive order.
    pub fn add_fragments(&mut self, fragments: impl Iterator<Item = (u32, [u32; 2])>) {
        let mut known: HashMap<[u32; 2], usize> = HashMap::new();
        for (invocation, at) in fragments {
            let pixel = *known.entry(at).or_insert_with(|| {
                self.fragments.push((Vec::new(), None));
                self.fragments.len() - 1
            });
            self.pixels.insert(invocation, pixel);
            self.fragments[pixel].0.push(invocation);
        }
    }

    /// Returns the number of fragments of the same pixel before an invocation.
    pub fn count_predecessors(&self, invocation: u32) -> u32 {
        let pixel = self.pixels.get(&invocation).and_then(|pixel| self.fragments.get(*pixel));
        let place = pixel.and_then(|(left, _)| left.iter().position(|other| *other == invocation));
        place.unwrap_or(0) as u32
    }

    fn can_enter(&self, invocation: u32, ordered: bool) -> bool {
        let pixel = self.pixels.get(&invocation).and_then(|pixel| self.fragments.get(*pixel));
        pixel.is_none_or(|(left, inside)| match ordered {
            // Ordered sections follow primitive order; the list has those that have not ended.
            true => left.first() == Some(&invocation),
            false => inside.is_none(),
        })
    }

    fn enter_section(&mut self, invocation: u32) {
        let pixel = self.pixels.get(&invocation).and_then(|pixel| self.fragments.get_mut(*pixel));
        if let Some((_, inside)) = pixel {
            *inside = Some(invocation);
        }
    }

    fn leave_section(&mut self, invocation: u32) {
        let pixel = self.pixels.get(&invocation).and_then(|pixel| self.fragments.get_mut(*pixel));
        if let Some((left, inside)) = pixel {
            left.retain(|other| *other != invocation);
            *inside = None;
        }
    }
}

impl Machine {
    /// Removes the lanes whose section may not begin yet.
    pub(super) fn wait_for_sections(&mut self, number: usize, program: &Program) {
        if program.interlock_is_ordered.is_none() {
            return;
        }
        let wave = &self.waves[number];
        for (slot, mask) in &mut self.ready {
            let Some(MemoryOpKind::SectionBegin { ordered }) =
                wave.operation(*slot, program).map(|op| op.kind)
            else {
                continue;
            };
            let ordered = ordered && self.fault != Fault::SectionOrderIgnored;
            if self.fault == Fault::SectionNotExclusive {
                continue;
            }
            let can_enter = |lane: &usize| {
                wave.paths.get(*lane).is_none_or(|path| self.sections.can_enter(path[0], ordered))
            };
            let open = lanes_in_mask(*mask).filter(can_enter).fold(0, |all, lane| all | 1 << lane);
            let together = open == wave.pending_lanes(*slot);
            *mask = if ordered || together { open } else { 0 };
        }
        self.ready.retain(|(_, mask)| *mask != 0);
    }

    /// Begins or ends the sections of some lanes.
    pub(super) fn perform_section(&mut self, number: usize, mask: u64, begins: bool) {
        for lane in lanes_in_mask(mask) {
            let Some(path) = self.waves[number].paths.get(lane) else { continue };
            match begins {
                true => self.sections.enter_section(path[0]),
                false => self.sections.leave_section(path[0]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fragments_of_one_pixel_exclude_each_other() {
        let mut sections = InterlockQueue::default();
        sections.add_fragments([(5, [0, 0]), (6, [1, 0]), (3, [0, 0])].into_iter());
        assert_eq!([5, 6, 3, 9].map(|fragment| sections.count_predecessors(fragment)), [0, 0, 1, 0]);
        let may =
            |sections: &InterlockQueue, ordered| [5, 6, 3, 9].map(|one| sections.can_enter(one, ordered));
        assert_eq!(may(&sections, true), [true, true, false, true]);
        assert_eq!(may(&sections, false), [true; 4]);
        sections.enter_section(3);
        assert_eq!(may(&sections, false), [false, true, false, true]);
        sections.leave_section(3);
        sections.enter_section(5);
        assert_eq!(may(&sections, false), [false, true, false, true]);
        sections.leave_section(5);
        assert_eq!(may(&sections, true), [false, true, false, true]);
    }
}
