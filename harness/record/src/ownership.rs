//! Queue family ownership: transfers between families, and contents that a family needs and does not own.
//!
//! Vulkan specification, "Queue Family Ownership Transfer". A release and an acquire with equal families and layouts transfer the bytes that
//! both name, if the release happens before the acquire. A family that overwrites bytes owns them without a transfer, and so does the
//! first one that uses them. Sound for reports: each is about contents that another family owns. What the host overwrites belongs to none.

use std::collections::BTreeMap;

use crate::hazard::{ByteRange, MissingTransfer, ResourceId};
use crate::layouts::UNDEFINED;
use crate::scopes::ImagePart;

/// A resource with an owner: a buffer, or a part of an image.
pub(crate) type OwnedPart = (ResourceId, Option<ImagePart>);

/// Returns true if one of the families of a transfer is another API.
pub(crate) fn has_other_api(families: [u32; 2]) -> bool {
    /// `VK_QUEUE_FAMILY_FOREIGN_EXT` and `VK_QUEUE_FAMILY_EXTERNAL`.
    const OTHER_APIS: [u32; 2] = [u32::MAX - 2, u32::MAX - 1];
    families.iter().any(|family| OTHER_APIS.contains(family))
}

/// The effect of a command on the owner of bytes.
#[derive(Clone, Copy)]
pub(crate) enum OwnershipStep {
    /// A use; one that writes overwrites the bytes.
    Use {
        needs_contents: bool,
        is_write: bool,
        is_possible: bool,
    },
    Release(TransferHalf),
    Acquire(TransferHalf),
}

/// The families and the layouts of a half of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransferHalf {
    pub families: [u32; 2],
    pub layouts: Option<[i32; 2]>,
}

/// The owner of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Owner {
    family: u32,
    /// The last command that used or released the bytes.
    last: usize,
    /// The release that no acquire has followed.
    release: Option<TransferHalf>,
    /// True if the acquire is not ordered after the release.
    is_unordered: bool,
}

/// Contents that another family owns.
pub(crate) struct OwnershipError {
    /// The command that used or released them.
    pub first: usize,
    pub range: ByteRange,
    pub missing: MissingTransfer,
    /// True if another API may have replaced them.
    pub is_possible: bool,
}

/// The owners of all resources.
#[derive(Default)]
pub(crate) struct Owners {
    parts: BTreeMap<OwnedPart, Vec<(ByteRange, Owner)>>,
}

impl TransferHalf {
    /// Returns true for a transition that discards the contents.
    fn is_discarding(&self) -> bool {
        self.layouts.is_some_and(|[old, _]| old == UNDEFINED)
    }
}

impl Owner {
    /// Returns what a step of a command of a family lacks.
    fn missing_for(&self, family: u32, step: OwnershipStep) -> Option<MissingTransfer> {
        match (step, self.release) {
            // Another API may return it to any family, and in another layout.
            (OwnershipStep::Acquire(half), Some(TransferHalf { families, .. }))
                if has_other_api(families) && families[1] == half.families[0] =>
            {
                None
            }
            (OwnershipStep::Acquire(half), Some(release)) => {
                (release != half).then_some(MissingTransfer::EqualHalves)
            }
            (OwnershipStep::Acquire(_), None) => Some(MissingTransfer::Release),
            (_, Some(_)) => Some(MissingTransfer::Acquire),
            (_, None) if self.family != family => Some(MissingTransfer::Both),
            (_, None) => self.is_unordered.then_some(MissingTransfer::Order),
        }
    }
}

impl Owners {
    /// Adds a step of a command of a family, and returns what it lacks. `is_ordered` returns true if a release happens before the command.
    pub fn add_step(
        &mut self,
        part: OwnedPart,
        range: ByteRange,
        (command, family): (usize, u32),
        step: OwnershipStep,
        mut is_ordered: impl FnMut(usize) -> bool,
    ) -> Vec<OwnershipError> {
        let mut errors = Vec::new();
        self.update(part, range, |range, owner| {
            let own = Owner { family, last: command, release: None, is_unordered: false };
            let missing = owner.zip(owner.and_then(|owner| owner.missing_for(family, step)));
            let (needs_contents, is_owner, is_possible) = match step {
                OwnershipStep::Use { needs_contents, is_write, is_possible } => {
                    (needs_contents, (needs_contents || is_write || missing.is_none()) && !is_possible, false)
                }
                OwnershipStep::Release(half) => (!half.is_discarding(), true, false),
                OwnershipStep::Acquire(half) => (!half.is_discarding(), true, has_other_api(half.families)),
            };
            if let Some((owner, missing)) = missing.filter(|_| needs_contents) {
                errors.push(OwnershipError { first: owner.last, range, missing, is_possible });
            }
            match (step, owner) {
                _ if !is_owner => owner,
                (OwnershipStep::Release(half), _) => {
                    Some(Owner { release: missing.is_none().then_some(half), ..own })
                }
                (OwnershipStep::Acquire(_), Some(owner)) if owner.release.is_some() => {
                    let is_unordered = !is_ordered(owner.last) && missing.is_none();
                    let last = if is_unordered { owner.last } else { command };
                    Some(Owner { is_unordered, last, ..own })
                }
                _ => Some(own),
            }
        });
        errors
    }

    /// Replaces the owners of a range; bytes without one are `None`.
    fn update(
        &mut self,
        part: OwnedPart,
        range: ByteRange,
        mut change: impl FnMut(ByteRange, Option<Owner>) -> Option<Owner>,
    ) {
        let all = self.parts.entry(part).or_default();
        let (mut updated, mut next) = (Vec::new(), range.0);
        for (bytes, owner) in std::mem::take(all) {
            let (start, end) = (bytes.0.max(range.0), bytes.1.min(range.1));
            if start >= end {
                updated.push((bytes, Some(owner)));
                continue;
            }
            if next < start {
                updated.push(((next, start), change((next, start), None)));
            }
            updated.extend([(bytes.0, start), (end, bytes.1)].map(|rest| (rest, Some(owner))));
            updated.push(((start, end), change((start, end), Some(owner))));
            next = end;
        }
        if next < range.1 {
            updated.push(((next, range.1), change((next, range.1), None)));
        }
        all.extend(updated.into_iter().filter_map(|(bytes, owner)| Some((bytes, owner?))));
        all.retain(|(bytes, _)| bytes.0 < bytes.1);
        all.sort_unstable_by_key(|(bytes, _)| *bytes);
        all.dedup_by(|(later, owner), (earlier, other)| {
            let is_joined = owner == other && later.0 == earlier.1;
            earlier.1 = if is_joined { later.1 } else { earlier.1 };
            is_joined
        });
    }

    /// Forgets the owner of a resource that the host overwrites.
    pub fn forget(&mut self, resource: ResourceId) {
        self.parts.retain(|(of, _), _| *of != resource);
    }
}
