//! Two kernels in one draw: vertices, and the fragments of the points that they place, with one list of
//! bindings.

use rspirv::spirv::{Decoration, Op};

use crate::kernel::{Binding, CompiledKernel, ImageBinding};

/// The modules of a draw, with common binding numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawModules {
    /// SPIR-V words of the vertex shader.
    pub vertex: Vec<u32>,
    /// SPIR-V words of the fragment shader.
    pub fragment: Vec<u32>,
    /// The storage-buffer bindings of set 0. True if only the vertex shader uses it: each stage has separate
    /// claims.
    pub bindings: Vec<(Binding, bool)>,
    /// The image bindings after those.
    pub images: Vec<ImageBinding>,
}

impl DrawModules {
    /// Combines a vertex and a fragment kernel that were compiled for one dispatch, so their push constants
    /// are the same.
    pub fn combine(vertex: &CompiledKernel, fragment: &CompiledKernel) -> DrawModules {
        let mut bindings: Vec<(Binding, bool)> =
            fragment.bindings.iter().map(|binding| (*binding, false)).collect();
        let mut images = fragment.images.clone();
        let own = |binding: &Binding| (*binding, *binding == Binding::Claims);
        let buffers = match_indices_of(&vertex.bindings, own, &mut bindings);
        let of_vertex = match_indices_of(&vertex.images, |image| *image, &mut images);
        // Image bindings follow all buffers.
        let first = bindings.len() as u32;
        let vertices: Vec<u32> =
            buffers.into_iter().chain(of_vertex.into_iter().map(|image| first + image)).collect();
        let fragments: Vec<u32> =
            (0..fragment.bindings.len() as u32).chain((first..).take(fragment.images.len())).collect();
        DrawModules {
            vertex: renumber_bindings(&vertex.words, &vertices),
            fragment: renumber_bindings(&fragment.words, &fragments),
            bindings,
            images,
        }
    }
}

/// Returns the index in `all` of each wanted entry, each once; missing ones are appended.
fn match_indices_of<From, To: PartialEq>(
    wanted: &[From],
    key_of: impl Fn(&From) -> To,
    all: &mut Vec<To>,
) -> Vec<u32> {
    let mut numbers: Vec<u32> = Vec::with_capacity(wanted.len());
    for key in wanted.iter().map(key_of) {
        let fits = |(number, known): &(u32, &To)| **known == key && !numbers.contains(number);
        let found = (0..).zip(all.iter()).find(fits).map(|(number, _)| number);
        numbers.push(found.unwrap_or_else(|| {
            all.push(key);
            all.len() as u32 - 1
        }));
    }
    numbers
}

/// Returns the words of a module with binding `i` renumbered to `numbers[i]`.
fn renumber_bindings(words: &[u32], numbers: &[u32]) -> Vec<u32> {
    const HEADER: usize = 5;
    const DECORATION: u32 = Decoration::Binding as u32;
    let mut words = words.to_vec();
    let mut rest = words.get_mut(HEADER..).unwrap_or_default();
    while let Some(first) = rest.first() {
        // "Physical Layout of a SPIR-V Module and Instruction": the word count and the opcode.
        let (length, op) = ((first >> 16) as usize, first & 0xffff);
        let Some((instruction, others)) = rest.split_at_mut_checked(length.max(1)) else { break };
        if let [_, _, DECORATION, binding] = instruction
            && op == Op::Decorate as u32
            && let Some(number) = numbers.get(*binding as usize)
        {
            *binding = *number;
        }
        rest = others;
    }
    words
}
