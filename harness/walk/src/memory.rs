//! Memory objects of a walk: bytes, a taint for each byte, and the access history.

use std::collections::BTreeMap;

use arithmetic::TexelFormat;
use litmus::StorageClass;

use super::shadow::{ShadowMemory, WORD_BYTES};
use super::value::{ConcretePointer, Taint, UNDEFINED, UNWRITTEN};
use entry_point::BufferRobustness;
use entry_point::inputs::Sampler;

/// Upper bound on the size of all objects of a dispatch.
pub(super) const MAX_BYTES: u64 = 1 << 31;
/// Bytes of a word whose stores are compared.
const WORD: usize = WORD_BYTES as usize;
/// Bits of the address range of an object. The object starts in its middle, because shaders compute addresses
/// before the start and return.
const ADDRESS_BITS: u32 = 32;
const ADDRESS_RANGE_MIDDLE: u64 = 1 << (ADDRESS_BITS - 1);
/// The number of address ranges before that of the first object. No small number is an address.
const UNUSED_RANGES: u32 = 0x7000;

/// Returns the address of a byte of an object.
pub(super) fn address_of_byte(object: u32, offset: u64) -> u64 {
    let range = u64::from(object) + u64::from(UNUSED_RANGES);
    (range << ADDRESS_BITS).wrapping_add(ADDRESS_RANGE_MIDDLE).wrapping_add(offset)
}

/// Returns the object that contains an address, and the wrapping byte offset.
pub(super) fn resolve_address(address: u64) -> (Option<u32>, u64) {
    let object =
        u32::try_from(address >> ADDRESS_BITS).ok().and_then(|range| range.checked_sub(UNUSED_RANGES));
    (object, (address & (2 * ADDRESS_RANGE_MIDDLE - 1)).wrapping_sub(ADDRESS_RANGE_MIDDLE))
}

/// The dimensions and format of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImageLayout {
    pub size: [u32; 3],
    pub levels: u32,
    /// `None` if the shader declares no format.
    pub format: Option<TexelFormat>,
    /// Number of coordinates of a texel.
    pub axes: usize,
    /// True if the last coordinate is an array layer.
    pub is_layered: bool,
    /// True for cube images, which samplers address by direction.
    pub is_cube: bool,
    /// True if neither an option nor the search for inputs gives the size.
    pub is_default: bool,
}

/// A memory object.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryObject {
    /// Its variable; 0 for the target of an address.
    pub variable: u32,
    pub name: String,
    /// `None` if it is read-only or private.
    pub class: Option<StorageClass>,
    pub bytes: Vec<u8>,
    /// Taint of each byte; empty if all are 0.
    pub taint: Vec<Taint>,
    pub shadow: ShadowMemory,
    /// The words that atomics changed, with what they would hold without atomics. Only if the language defines the
    /// collision of equal stores.
    pub plain_words: BTreeMap<u64, [u8; WORD]>,
    pub coherent: bool,
    /// True if the length was given and not assumed.
    pub has_known_length: bool,
    /// The assumed input that is its size; 0 for a given or fixed size.
    pub length_taint: Taint,
    /// The effect of accesses beyond its end.
    pub robustness: BufferRobustness,
    pub texels: Option<ImageLayout>,
    /// The sampler, for sampler and combined objects with a known state.
    pub sampler: Option<Sampler>,
}

/// The private objects of an invocation, as a stack that reuses its entries.
#[derive(Clone, Debug, Default)]
pub(super) struct PrivateObjects {
    all: Vec<MemoryObject>,
    live_count: usize,
}

impl PrivateObjects {
    pub fn len(&self) -> usize {
        self.live_count
    }

    pub fn iter(&self) -> std::slice::Iter<'_, MemoryObject> {
        self.as_slice().iter()
    }

    pub fn as_slice(&self) -> &[MemoryObject] {
        self.all.get(..self.live_count).unwrap_or_default()
    }

    pub fn as_mut_slice(&mut self) -> &mut [MemoryObject] {
        self.all.get_mut(..self.live_count).unwrap_or_default()
    }

    /// Removes all but the first `count` objects.
    pub fn truncate_to(&mut self, count: usize) {
        // The objects stay allocated: the next call pushes about as many.
        self.live_count = self.live_count.min(count);
    }

    /// Adds an object with stale contents.
    pub fn push_stale(&mut self) -> &mut MemoryObject {
        if self.live_count == self.all.len() {
            self.all.push(MemoryObject::default());
        }
        self.live_count += 1;
        &mut self.all[self.live_count - 1]
    }

    /// Adds a function variable and returns its index.
    pub fn push_variable(&mut self, variable: u32, bytes: usize) -> usize {
        self.push_stale().reset_private(variable, bytes);
        self.live_count - 1
    }
}

impl MemoryObject {
    pub fn new(variable: u32, name: String, class: Option<StorageClass>, bytes: Vec<u8>) -> MemoryObject {
        MemoryObject { variable, name, class, bytes, has_known_length: true, ..MemoryObject::default() }
    }

    /// Writes annotated initial values: offset, bytes and number of each scalar.
    pub fn apply_annotations(&mut self, scalars: Option<&Vec<(u64, u32, u64)>>) {
        for (offset, bytes, number) in scalars.into_iter().flatten() {
            if self.contains_range(*offset, *bytes) {
                self.write_scalar(*offset, *bytes, *number, 0);
            }
        }
    }

    /// Returns uninitialized memory.
    pub fn uninitialized(
        variable: u32,
        name: String,
        class: Option<StorageClass>,
        bytes: usize,
    ) -> MemoryObject {
        let shared = if class == Some(StorageClass::Workgroup) { UNWRITTEN } else { 0 };
        let taint = vec![UNDEFINED | shared; bytes];
        MemoryObject { taint, ..MemoryObject::new(variable, name, class, vec![0; bytes]) }
    }

    /// Marks the contents with the taint of an assumed input, if they are one.
    pub fn into_input(mut self, taint: Option<Taint>) -> MemoryObject {
        if let Some(taint) = taint {
            self.has_known_length = false;
            self.add_taint(0, self.bytes.len() as u64, taint);
        }
        self
    }

    /// Adds taint to a range of bytes.
    pub fn add_taint(&mut self, offset: u64, bytes: u64, taint: Taint) {
        self.taint.resize(self.bytes.len(), 0);
        let end = offset.saturating_add(bytes) as usize;
        if let Some(range) = self.taint.get_mut(offset as usize..end) {
            range.iter_mut().for_each(|byte| *byte |= taint);
        }
    }

    /// Resets an object to an uninitialized function variable.
    pub fn reset_private(&mut self, variable: u32, bytes: usize) {
        (self.variable, self.has_known_length) = (variable, true);
        self.bytes.clear();
        self.bytes.resize(bytes, 0);
        self.taint.clear();
        self.taint.resize(bytes, UNDEFINED);
    }

    #[inline]
    pub fn contains_range(&self, offset: u64, bytes: u32) -> bool {
        offset.checked_add(u64::from(bytes)).is_some_and(|end| end <= self.bytes.len() as u64)
    }

    /// Returns true if the access is out of bounds for every possible object length.
    ///
    /// A descriptor range has 32 bits (`maxStorageBufferRange`). A negative offset comes from a negative
    /// index, or from an unsigned index of at least 2^31, which is out of bounds for elements of at least two
    /// bytes.
    pub fn is_beyond_any_object(&self, pointer: &ConcretePointer, bytes: u32) -> bool {
        let end = pointer.offset.saturating_add(u64::from(bytes));
        let beyond = if (pointer.offset as i64) < 0 { bytes > 1 } else { end > u64::from(u32::MAX) };
        pointer.is_out_of_bounds || self.variable != 0 && beyond
    }

    /// Returns true if robustness defines an access that the object does not contain. WGSL defines those beyond arrays within it.
    pub fn is_robust(&self, pointer: &ConcretePointer, is_wgsl: bool) -> bool {
        self.robustness != BufferRobustness::Disabled
            && self.has_known_length
            && (!pointer.is_out_of_bounds || is_wgsl)
    }

    /// Reads a scalar; the caller has checked the bounds.
    #[inline]
    pub fn read_scalar(&self, offset: u64, bytes: u32) -> (u64, Taint) {
        let start = offset as usize;
        // Most scalars have four bytes.
        if let (4, Some(place)) = (bytes, self.bytes.get(start..).and_then(<[u8]>::first_chunk)) {
            let taint = self.taint.get(start..).and_then(<[Taint]>::first_chunk);
            let taint = taint.map_or(0, |[a, b, c, d]| a | b | c | d);
            return (u64::from(u32::from_le_bytes(*place)), taint);
        }
        let end = start + bytes.min(8) as usize;
        let Some(place) = self.bytes.get(start..end) else { return (0, UNDEFINED) };
        let mut all = [0; 8];
        all[..place.len()].copy_from_slice(place);
        let taint = self.taint.get(start..end).unwrap_or_default().iter().fold(0, |all, taint| all | taint);
        (u64::from_le_bytes(all), taint)
    }

    /// Returns true if atomics have changed words that plain stores may be compared with.
    #[inline]
    pub fn has_plain_words(&self) -> bool {
        !self.plain_words.is_empty()
    }

    /// Saves the words of a range before an atomic changes them.
    pub fn save_plain_words(&mut self, offset: u64, bytes: u32) {
        let word = WORD as u64;
        for at in offset / word..(offset + u64::from(bytes)).div_ceil(word) {
            let contents = self.bytes.get((at * word) as usize..).and_then(<[u8]>::first_chunk).copied();
            self.plain_words.entry(at).or_insert(contents.unwrap_or_default());
        }
    }

    /// Performs a plain store. Returns true if the last plain stores of these bytes, or else the initial contents, are equal
    /// to what it writes.
    pub fn store_plain(&mut self, offset: u64, bytes: u32, value: u64, taint: Taint) -> bool {
        let mut is_equal = self.read_scalar(offset, bytes) == (value, taint);
        if self.has_plain_words() {
            is_equal = true;
            for (at, stored) in (offset..offset + u64::from(bytes.min(8))).zip(value.to_le_bytes()) {
                let place = at as usize % WORD;
                match self.plain_words.get_mut(&(at / WORD as u64)) {
                    Some(word) => is_equal &= std::mem::replace(&mut word[place], stored) == stored,
                    None => is_equal &= self.bytes.get(at as usize) == Some(&stored),
                }
            }
        }
        self.write_scalar(offset, bytes, value, taint);
        is_equal
    }

    #[inline]
    pub fn write_scalar(&mut self, offset: u64, bytes: u32, value: u64, taint: Taint) {
        let start = offset as usize;
        let end = start + bytes.min(8) as usize;
        let Some(place) = self.bytes.get_mut(start..end) else { return };
        place.copy_from_slice(&value.to_le_bytes()[..bytes.min(8) as usize]);
        // Taint bytes exist from the first tainted write on; most objects never have one.
        if taint != 0 && self.taint.is_empty() {
            self.taint = vec![0; self.bytes.len()];
        }
        if let Some(place) = self.taint.get_mut(start..end) {
            place.fill(taint);
        }
    }
}
