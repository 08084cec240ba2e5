//! Two kernels as one draw: vertices, and the fragments of points that they place, with one list of bindings.

use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, Op};

use crate::kernel::{Binding, ImageBinding, Kernel};

/// The modules of a draw, with bindings numbered for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// SPIR-V words of the vertices.
    pub vertex: Vec<u32>,
    /// SPIR-V words of the fragments.
    pub fragment: Vec<u32>,
    /// What stands behind each storage-buffer binding of set 0, and whether it is of the vertices alone: each stage has claims of its own.
    pub bindings: Vec<(Binding, bool)>,
    /// What stands behind the bindings after those.
    pub images: Vec<ImageBinding>,
}

impl Together {
    /// Of vertices and fragments that are compiled for one dispatch: their push constants are the same.
    pub fn of(vertex: &Kernel, fragment: &Kernel) -> Together {
        let mut bindings: Vec<(Binding, bool)> =
            fragment.bindings.iter().map(|binding| (*binding, false)).collect();
        let mut images = fragment.images.clone();
        let shared = |binding: &Binding| *binding != Binding::Claims;
        let own = |binding: &Binding| (*binding, !shared(binding));
        let buffers = matched(&vertex.bindings, own, &mut bindings);
        let of_vertex = matched(&vertex.images, |image| *image, &mut images);
        let (first, fragments) = (bindings.len() as u32, fragment.bindings.len() as u32);
        Together {
            vertex: renumbered(&vertex.words, |number| match buffers.get(number as usize) {
                Some(known) => *known,
                None => {
                    let image = number.saturating_sub(vertex.bindings.len() as u32);
                    first + of_vertex.get(image as usize).copied().unwrap_or_default()
                }
            }),
            fragment: renumbered(&fragment.words, |number| match number.checked_sub(fragments) {
                Some(image) => first + image,
                None => number,
            }),
            bindings,
            images,
        }
    }
}

/// The numbers that `wanted` have in `all`, each once: those of equal ones that are there, and new ones behind them.
fn matched<From, To: PartialEq>(wanted: &[From], told: impl Fn(&From) -> To, all: &mut Vec<To>) -> Vec<u32> {
    let mut numbers: Vec<u32> = Vec::with_capacity(wanted.len());
    for one in wanted.iter().map(told) {
        let fits = |(number, known): &(u32, &To)| **known == one && !numbers.contains(number);
        let found = (0..).zip(all.iter()).find(fits).map(|(number, _)| number);
        numbers.push(found.unwrap_or_else(|| {
            all.push(one);
            all.len() as u32 - 1
        }));
    }
    numbers
}

/// A module of ours with other numbers of bindings.
fn renumbered(words: &[u32], number: impl Fn(u32) -> u32) -> Vec<u32> {
    // What the emitter has written is read again.
    let Ok(mut module) = rspirv::dr::load_words(words) else { return words.to_vec() };
    for instruction in &mut module.annotations {
        if let (Op::Decorate, [_, Operand::Decoration(Decoration::Binding), Operand::LiteralBit32(binding)]) =
            (instruction.class.opcode, instruction.operands.as_mut_slice())
        {
            *binding = number(*binding);
        }
    }
    rspirv::binary::Assemble::assemble(&module)
}
