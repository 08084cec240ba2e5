//! Small kernels, assembled from `kernels.spvasm`.

use plan::{Kernel, Subgroups};

/// SPIR-V 1.5, which is that of Vulkan 1.2.
const SPIRV_VERSION: u32 = 0x0001_0500;

/// Returns the kernel with a body of `kernels.spvasm`, for buffers of words and push constants.
fn assemble_kernel(name: &str, workgroup_size: u32, bindings: u32, words_pushed: u32) -> Kernel {
    let (declarations, bodies) = include_str!("kernels.spvasm").split_once("\n;; ").unwrap();
    let mut bodies = bodies.split("\n;; ").filter_map(|body| body.split_once('\n'));
    let (_, body) = bodies.find(|(own, _)| *own == name).unwrap();
    let size = workgroup_size.to_string();
    let text = declarations.replace("SIZE", &size).replace("\nBODY\n", &format!("\n{body}\n"));
    let mut words = spirv_reader::assemble_text(&text).unwrap().words;
    words[1] = SPIRV_VERSION;
    Kernel { words, bindings, push_constant_bytes: words_pushed * 4, ..Kernel::default() }
}

/// Word `i` of binding 0 becomes `i × pushed 0 + pushed 1`, for every invocation `i`.
pub fn linear_kernel(workgroup_size: u32) -> Kernel {
    assemble_kernel("linear", workgroup_size, 1, 2)
}

/// Word `i` of binding 1 becomes word `i` of binding 0, plus one.
pub fn increment_kernel(workgroup_size: u32) -> Kernel {
    assemble_kernel("increment", workgroup_size, 2, 0)
}

/// A kernel without accesses.
pub fn empty_kernel() -> Kernel {
    assemble_kernel("empty", 1, 0, 0)
}

/// Every invocation waits until word 0 of binding 0 is nonzero, then adds it to word 0 of binding 1.
pub fn waiting_kernel(workgroup_size: u32) -> Kernel {
    assemble_kernel("waiting", workgroup_size, 2, 0)
}

/// Word `i` of binding 0 becomes the index of the invocation in its subgroup. It needs full subgroups of
/// `subgroup_size`.
pub fn lane_index_kernel(workgroup_size: u32, subgroup_size: u32) -> Kernel {
    let kernel = assemble_kernel("lane", workgroup_size, 1, 0);
    Kernel { subgroups: Subgroups::Full(subgroup_size), ..kernel }
}
