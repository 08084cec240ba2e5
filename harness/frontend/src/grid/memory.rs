//! Memory of a walk: objects of bytes, with what is known of each byte and who was there.

use arithmetic::TexelFormat;
use litmus::StorageClass;

use super::sampler::Sampler;
use super::shadow::ShadowMemory;
use super::value::{ConcretePointer, Taint, UNDEFINED};

/// Bytes of all objects of a dispatch at most.
pub(super) const MAX_BYTES: u64 = 1 << 31;
/// Objects of invocations that have ended, which are kept for others, at most.
const MAX_SPARE: usize = 256;
/// Addresses of an object, which begins in their middle: shaders compute addresses before its beginning, and come back to it.
const ADDRESS_BITS: u32 = 32;
const MIDDLE: u64 = 1 << (ADDRESS_BITS - 1);

/// The address of a byte of an object.
pub(super) fn address_of_byte(object: u32, offset: u64) -> u64 {
    ((u64::from(object) + 1) << ADDRESS_BITS).wrapping_add(MIDDLE).wrapping_add(offset)
}

/// The object that an address is of, where that is one, and the byte of it, which wraps around where it lies before.
pub(super) fn resolve_address(address: u64) -> (Option<u32>, u64) {
    let object = u32::try_from(address >> ADDRESS_BITS).ok().and_then(|number| number.checked_sub(1));
    (object, (address & (2 * MIDDLE - 1)).wrapping_sub(MIDDLE))
}

/// The texels of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImageLayout {
    pub size: [u32; 3],
    pub levels: u32,
    /// `None` where the shader does not say it.
    pub format: Option<TexelFormat>,
    /// Coordinates of a texel.
    pub axes: usize,
    /// Whether the last of them is a layer.
    pub layered: bool,
    /// Whether samplers look at it from a direction.
    pub cube: bool,
}

/// An object of memory.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryObject {
    /// Its variable; 0 for what an address points to.
    pub variable: u32,
    pub name: String,
    /// `None` where nobody writes.
    pub class: Option<StorageClass>,
    pub bytes: Vec<u8>,
    /// Empty where nothing is to be known.
    pub taint: Vec<Taint>,
    pub shadow: ShadowMemory,
    pub coherent: bool,
    /// Whether its length was given.
    pub has_known_length: bool,
    pub texels: Option<ImageLayout>,
    /// Of a sampler, or of an image that has one with it, where it was given.
    pub sampler: Option<Sampler>,
}

/// Objects of one invocation: its variables, and those of the functions that it is in. The space of those that were left stays for the
/// next.
#[derive(Clone, Debug, Default)]
pub(super) struct PrivateObjects {
    all: Vec<MemoryObject>,
    as_slice: usize,
}

impl PrivateObjects {
    pub fn with_objects(all: Vec<MemoryObject>) -> PrivateObjects {
        PrivateObjects { as_slice: all.len(), all }
    }

    pub fn len(&self) -> usize {
        self.as_slice
    }

    pub fn iter(&self) -> std::slice::Iter<'_, MemoryObject> {
        self.live().iter()
    }

    pub fn live(&self) -> &[MemoryObject] {
        self.all.get(..self.as_slice).unwrap_or_default()
    }

    pub fn as_mut_slice(&mut self) -> &mut [MemoryObject] {
        self.all.get_mut(..self.as_slice).unwrap_or_default()
    }

    /// Leaves all but the first.
    pub fn truncate_to(&mut self, count: usize) {
        self.as_slice = self.as_slice.min(count);
    }

    /// Begins a variable of a function of that many bytes; its number.
    pub fn push_variable(&mut self, variable: u32, bytes: usize, spare: &mut Vec<MemoryObject>) -> usize {
        if self.as_slice == self.all.len() {
            self.all.push(spare.pop().unwrap_or_default());
        }
        if let Some(object) = self.all.get_mut(self.as_slice) {
            object.reset_private(variable, bytes);
        }
        self.as_slice += 1;
        self.as_slice - 1
    }

    /// Leaves all, whose space others take.
    pub fn recycle_into(&mut self, spare: &mut Vec<MemoryObject>) {
        let kept = MAX_SPARE.saturating_sub(spare.len());
        spare.extend(self.all.drain(..).take(kept));
        self.as_slice = 0;
    }
}

impl MemoryObject {
    pub fn new(variable: u32, name: String, class: Option<StorageClass>, bytes: Vec<u8>) -> MemoryObject {
        MemoryObject { variable, name, class, bytes, has_known_length: true, ..MemoryObject::default() }
    }

    /// Gives scalars their first values: offset, bytes and number of each.
    pub fn apply_annotations(&mut self, scalars: Option<&Vec<(u64, u32, u64)>>) {
        for (offset, bytes, number) in scalars.into_iter().flatten() {
            if self.contains_range(*offset, *bytes) {
                self.write_scalar(*offset, *bytes, *number, 0);
            }
        }
    }

    /// Memory that nobody wrote yet.
    pub fn uninitialized(
        variable: u32,
        name: String,
        class: Option<StorageClass>,
        bytes: usize,
    ) -> MemoryObject {
        let taint = vec![UNDEFINED; bytes];
        MemoryObject { taint, ..MemoryObject::new(variable, name, class, vec![0; bytes]) }
    }

    /// Makes a variable of a function of another one, whose space it takes.
    pub fn reset_private(&mut self, variable: u32, bytes: usize) {
        (self.variable, self.has_known_length) = (variable, true);
        self.bytes.clear();
        self.bytes.resize(bytes, 0);
        self.taint.clear();
        self.taint.resize(bytes, UNDEFINED);
    }

    pub fn contains_range(&self, offset: u64, bytes: u32) -> bool {
        offset.checked_add(u64::from(bytes)).is_some_and(|end| end <= self.bytes.len() as u64)
    }

    /// Whether bytes that a pointer into it leads to are beyond it, however long it is. The range of a descriptor is a number of bytes of
    /// 32 bits (`maxStorageBufferRange`). An offset below 0 is of an index below 0 or, where the index is unsigned, of one of at least
    /// 2^31, which is beyond for elements of two bytes or more.
    pub fn is_beyond_any_object(&self, pointer: &ConcretePointer, bytes: u32) -> bool {
        let end = pointer.offset.saturating_add(u64::from(bytes));
        let beyond = if (pointer.offset as i64) < 0 { bytes > 1 } else { end > u64::from(u32::MAX) };
        pointer.out_of_bounds || self.variable != 0 && beyond
    }

    /// A number; the caller has looked at the bounds.
    pub fn read_scalar(&self, offset: u64, bytes: u32) -> (u64, Taint) {
        let at = offset as usize;
        // Most numbers have four bytes.
        if let (4, Some(place)) = (bytes, self.bytes.get(at..).and_then(<[u8]>::first_chunk)) {
            let taint = self.taint.get(at..).and_then(<[Taint]>::first_chunk);
            let taint = taint.map_or(0, |[a, b, c, d]| a | b | c | d);
            return (u64::from(u32::from_le_bytes(*place)), taint);
        }
        let end = at + bytes.min(8) as usize;
        let Some(place) = self.bytes.get(at..end) else { return (0, UNDEFINED) };
        let mut all = [0; 8];
        all[..place.len()].copy_from_slice(place);
        let taint = self.taint.get(at..end).unwrap_or_default().iter().fold(0, |all, taint| all | taint);
        (u64::from_le_bytes(all), taint)
    }

    pub fn write_scalar(&mut self, offset: u64, bytes: u32, value: u64, taint: Taint) {
        let at = offset as usize;
        let end = at + bytes.min(8) as usize;
        let Some(place) = self.bytes.get_mut(at..end) else { return };
        place.copy_from_slice(&value.to_le_bytes()[..bytes.min(8) as usize]);
        if taint != 0 && self.taint.is_empty() {
            self.taint = vec![0; self.bytes.len()];
        }
        if let Some(place) = self.taint.get_mut(at..end) {
            place.fill(taint);
        }
    }
}
