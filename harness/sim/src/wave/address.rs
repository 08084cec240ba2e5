//! Address computation of a wave, and prefetches as soon as an address is known.

use super::{Wave, WaveContext, register_lanes};
use crate::program::{LANES, Register};
use crate::random::lanes_in_mask;

impl Wave {
    pub(super) fn compute_address(
        &mut self,
        register: Register,
        reference: u16,
        index: Register,
        (scale, offset, bytes): (u32, u32, u32),
        context: &mut WaveContext<'_>,
    ) {
        let Some(bound) = context.dispatch.bindings.get(usize::from(reference)).copied() else { return };
        let places = std::mem::take(&mut self.places);
        if let Some((sources, to)) = self.split_destination(register) {
            let zeros = [0; LANES];
            let index = register_lanes(sources, index).unwrap_or(&zeros);
            let (base, limit) = (bound.base.wrapping_mul(4), (bound.words * 4).checked_sub(bytes));
            for lane in 0..LANES {
                let byte = index[lane].wrapping_mul(scale).wrapping_add(offset);
                // Address 0 means out of bounds: loads return 0 and stores are discarded.
                let within = limit.is_some_and(|limit| byte <= limit);
                to[lane] = if within { base.wrapping_add(byte) } else { 0 };
            }
            if bound.workgroup_stride > 0 {
                for (to, place) in to.iter_mut().zip(&places).filter(|(to, _)| **to != 0) {
                    *to = to.wrapping_add(place[0].wrapping_mul(bound.workgroup_stride).wrapping_mul(4));
                }
            }
        }
        self.places = places;
        self.prefetch_pointer(register, context);
    }

    /// Offsets addresses to another component; out-of-bounds addresses stay so.
    pub(super) fn compute_pointer(
        &mut self,
        register: Register,
        from: Register,
        bytes: u32,
        context: &mut WaveContext<'_>,
    ) {
        if let Some((sources, to)) = self.split_destination(register) {
            let Some(from) = register_lanes(sources, from) else { return };
            for (to, from) in to.iter_mut().zip(from) {
                *to = if *from == 0 { 0 } else { from.wrapping_add(bytes) };
            }
        }
        self.prefetch_pointer(register, context);
    }

    /// Computes texel addresses; 0 outside the image.
    pub(super) fn compute_texel_address(
        &mut self,
        register: Register,
        reference: u16,
        column: Register,
        row: Register,
        context: &mut WaveContext<'_>,
    ) {
        let Some(bound) = context.dispatch.bindings.get(usize::from(reference)).copied() else { return };
        if let Some((sources, to)) = self.split_destination(register) {
            let zeros = [0; LANES];
            let (Some(columns), rows) =
                (register_lanes(sources, column), register_lanes(sources, row).unwrap_or(&zeros))
            else {
                return;
            };
            // A one-dimensional image is a single row.
            let width = if bound.width == 0 { bound.words } else { bound.width };
            for lane in 0..LANES {
                // In 64 bits: a large row must not wrap around into the image.
                let texel = u64::from(rows[lane]) * u64::from(width) + u64::from(columns[lane]);
                let within = columns[lane] < width && texel < bound.words.into();
                to[lane] = if within { (bound.base + texel as u32).wrapping_mul(4) } else { 0 };
            }
        }
        self.prefetch_pointer(register, context);
    }

    /// Prefetches lines in some lanes as soon as their addresses are known.
    pub(super) fn prefetch_pointer(&mut self, register: Register, context: &mut WaveContext<'_>) {
        if context.prefetch_rate > 0 {
            for (pointer, memory) in &context.program.load_pointers {
                if *pointer == register && context.can_prefetch(*memory) {
                    let mask = context.random.mask(context.prefetch_rate) & self.execution_mask;
                    let level = match context.random.below(8) {
                        0 => 1,
                        1 => 2,
                        2 => 3,
                        _ => 0,
                    };
                    self.prefetch_slot(*pointer, *memory, mask, level, context);
                }
            }
        }
    }

    /// Fetches the lines of a pointer into a cache.
    pub fn prefetch_slot(
        &mut self,
        pointer: Register,
        memory: u16,
        mask: u64,
        level: u8,
        context: &mut WaveContext<'_>,
    ) {
        let Some(op) = context.program.memory.get(usize::from(memory)) else { return };
        let Some(bound) = context.dispatch.bindings.get(usize::from(op.reference)) else { return };
        let Some(addresses) = self.registers.get(pointer as usize) else { return };
        for lane in lanes_in_mask(mask & self.lanes) {
            let Some(path) = self.paths.get(lane) else { return };
            let word = addresses[lane] >> 2;
            if op.is_atomic() {
                context.memory.record_read_ahead(path, bound.reference, word, op.scope);
                continue;
            }
            context.memory.prefetch(path, bound.reference, word, op.private, level);
            // A wide access occupies two words.
            if op.bytes > 4 && word != 0 {
                context.memory.prefetch(path, bound.reference, word + 1, op.private, level);
            }
        }
    }
}
