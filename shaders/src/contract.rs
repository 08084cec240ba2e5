//! The contract between a kernel and its runner, as text and as code. The push constants are one list
//! ([`Parameters`]), and each formula below is written once, for numbers and for the instructions of kernels.
//!
//! # Placement of threads
//! The threads of a test are its **roles**. Roles that share a workgroup (same queue family and workgroup
//! number) form a *workgroup class*; roles of it that share a subgroup form a *subgroup class*; within that,
//! each role has its own lanes. With `C` workgroup classes and `G` = [`Parameters::groups`], a dispatch has
//! `C × G` workgroups. Workgroup `w` runs class `(w / p + t) mod C` for group `(w / (p × C)) × p + w mod p`,
//! where `p` = [`Parameters::pairing`] divides `G` and `t` = [`Parameters::turn`]. `p` = 1 alternates the
//! classes; `p` = `G` gives each class one contiguous range.
//!
//! A workgroup has `L` = [`CompiledKernel::lanes`] slots, and each slot runs every role of the workgroup's class
//! once. The slots are permuted: slot `l` of group `g` and class `c` runs instance `((g × group_multiplier +
//! c × group_offset) mod G) × L + (l × lane_multiplier + c × lane_offset) mod L`. The multipliers are coprime
//! to `G` and to `L`; no product of these formulas may exceed 32 bits. If several kernels run concurrently,
//! `c` counts the classes of all of them: it starts at [`CompiledKernel::first_class`].
//!
//! If every role has its own workgroup, slot `l` is the invocation with local index `l`. Otherwise the
//! subgroup with id `s` runs subgroup class `(s + t) mod S` of the workgroup's class, where `t` =
//! [`Parameters::turn`] and `S` is the number of subgroups of a workgroup. (Drivers that run subgroups one
//! after another then show every order.) Its lane `j` is slot `j mod L` of that subgroup's `j / L`-th role,
//! both in the order of the threads. `L` is then the subgroup size over the number of roles in the fullest
//! subgroup of any kernel of the [program](crate::Program), and a workgroup has as many subgroups as the
//! class with the most. Lanes without a role idle, but take part in control barriers.
//!
//! With [`CompiledKernel::is_parallel`], each invocation runs every thread. Of `G` workgroups, workgroup `w`
//! is the only one of group `w`. In every round it runs all classes, in the order of their threads, with the
//! slots and instances of the formula above. `group_offset` is coprime to `G`, and `G` is at least `C`, so
//! that different workgroups run the threads of an instance. They all meet in word 0, and `a` below is at
//! most `G`.
//!
//! If a variant sets the workgroup [size](crate::variant::WorkgroupShape), the invocation with local index
//! `i` (whatever the sizes in x, y and z) is lane `i mod L` of a virtual subgroup with id `i / L`. Each role
//! has its own virtual subgroup, in the order of the threads, and `S` is the number of roles in the fullest
//! class. `L` is the size over `S`, or less if another kernel of the program has less. Invocations from `L ×
//! S` on idle, but take part in control barriers.
//!
//! # Layout of memory
//! Every round `k` of `K` = [`Parameters::rounds`] has its own instances: instance index `n = k × G × L + i`.
//! Storage `s` of instance `n` is unit `n × stride + s × spacing` of the location buffer, where
//! [`Parameters::stride`] is at least `storages × spacing`; a unit has [`CompiledKernel::storage_words`] words.
//! Aliases of a storage are separate bindings of the same buffer, all decorated `Aliased`. Result slot `r` of
//! instance `n` is word `(s + r) × K × G × L + n` of the result buffer, where `s` = [`CompiledKernel::first_slot`].
//! Before each dispatch, the caller fills the result buffer with [`Parameters::poison`] and the location
//! buffer with the initial values.
//!
//! Storages in *images* are texels with the number of the first word of their unit: word `w` is texel `(w mod
//! 4096, w / 4096)` of a two-dimensional image and texel `w` of a one-dimensional image or a texel buffer.
//! Images have the same initial values as the location buffer; a texel buffer is a view of the location
//! buffer. With [`CompiledKernel::uses_addresses`], the location buffer's address follows the parameters
//! in the push constants, at byte [`CompiledKernel::push_constant_bytes`].
//!
//! The storages in [`CompiledKernel::separate_storages`] are in a second buffer and in other images,
//! each at the position that it would have in the first. Both buffers contain the initial values of all
//! storages.
//!
//! Storages in *workgroup memory* are initialized and read by the kernel. In every round, one invocation of
//! each slot writes the initial values, the workgroup executes a control barrier, the threads run, the
//! workgroup executes another control barrier, and the same invocation writes the final values of the outcome
//! to result slots.
//!
//! # Loops
//! A loop of a test has at most [`KernelConfig::loop_bound`] iterations in a round. A thread that reaches the
//! bound ends, and its [`ResultSlot::Done`] contains the complement of [`Parameters::done`]: the instance is
//! unresolved.
//!
//! # Rendezvous
//! If [`Parameters::spin`] > 0, the workgroups of one group meet before round 0 and before every
//! [`Parameters::interval`]-th round after it. One invocation of each adds 1 to word `g × d` of the
//! rendezvous buffer (relaxed, device or queue-family scope) and waits until it reads at least `a × m` at the
//! `m`-th rendezvous, counted from 1. Here `a` = [`Parameters::party`] is `C`, or less if fewer workgroups
//! run concurrently, and `d` is the [`rendezvous_spacing`]. The caller zeroes that buffer before each
//! dispatch.
//!
//! Failed polls are counted over the whole dispatch: after `spin` of them, an invocation does not wait again.
//! So the long wait until all are scheduled and the short ones between rounds share one bound. An invocation
//! whose first poll succeeds arrived last. The others detect that later, so it makes [`Parameters::hold`]
//! more loads before it continues. Every invocation waits by itself: no barrier is needed, lanes in lockstep
//! share one wait, and each subgroup of a workgroup begins its rounds after the other workgroups have
//! arrived. `C` counts the classes of all concurrent kernels. With one class there is no rendezvous.
//!
//! With `M` rendezvous, an invocation uses at most `K` loop iterations for rounds and `(2 + hold) × M + spin`
//! for waiting; some drivers limit the sum silently. If each thread has its own loop
//! ([`CompiledKernel::thread_loops`]), each rendezvous costs one more iteration for each thread of the kernel, and
//! one for the outer loop.
//!
//! # Receipts
//! A driver may omit a dispatch, execute it twice, or use the push constants, the kernel or the buffers of
//! another. So before it runs, invocation 0 of each workgroup adds the *receipt* ([`Parameters::receipt`], odd)
//! of its kernel ([`CompiledKernel::identity`]), buffers ([`CompiledKernel::measured_bindings`]), salts
//! ([`CompiledKernel::salted_paths`]) and parameters to word `g × d + 1 + c` of its rendezvous buffer; `c`
//! counts the classes of all concurrent kernels. Any
//! other value in that word means that the dispatch was not executed as requested. No other invocation
//! accesses that word, so a relaxed load and store are enough, and the correctness of atomic additions does
//! not matter here. Kernels of one fixed dispatch are for reading, and have no receipts. In a draw, the
//! invocation that [claims](crate::carrier) the first slot of a workgroup leaves the receipt, so that it is
//! there once however often a vertex or a fragment is shaded.
//!
//! The *salts* show which memory a kernel is bound to. They are in the storages of instance `K × G × L`, which no
//! invocation runs: before each submission, the caller writes the salt of a buffer or image to every word of these
//! units. It differs by memory and submission ([`salt_from_bits`]). The kernel reads one salt for each buffer
//! binding, image and address, with plain private loads. Those of buffers are `Nontemporal`, because a salt in a
//! cache would be of no use.
//! The word after the results also holds a salt, for kernels that [count](crate::classify).
//!
//! # Outside the grid
//! A driver may execute more than the dispatch contains: more workgroups, in x or in another dimension, larger
//! workgroups, more vertices, or one more round if a compiler mistakes `<` for `<=`. An invocation is outside
//! the grid if the index of its workgroup in x is not below the number of workgroups (`C × G`, plus those of
//! memory stress), if its index in y or z is not 0, or if its local index is not below
//! [`CompiledKernel::workgroup_size`]. Indexes are compared before any modulo. Such an invocation adds 1 to the
//! *overflow word* of its phase ([`overflow_word`]) and runs no thread, but executes the control barriers. An
//! invocation that ran more than [`Parameters::rounds`] rounds adds 1 too. The caller sets the word to 0
//! before each dispatch, and discards the results of the dispatch if it is not 0 afterwards. Kernels of one
//! fixed dispatch have no overflow word.
//!
//! # Memory stress
//! Kernels with [`KernelConfig::has_stress`] have a [`Binding::Scratch`], more push constants and more
//! workgroups: the contract is in [`crate::stress`].
//!
//! [`Binding::Scratch`]: crate::kernel::Binding::Scratch
//! [`CompiledKernel::uses_addresses`]: crate::kernel::CompiledKernel::uses_addresses
//! [`CompiledKernel::separate_storages`]: crate::kernel::CompiledKernel::separate_storages
//! [`CompiledKernel::first_class`]: crate::kernel::CompiledKernel::first_class
//! [`CompiledKernel::first_slot`]: crate::kernel::CompiledKernel::first_slot
//! [`CompiledKernel::identity`]: crate::kernel::CompiledKernel::identity
//! [`CompiledKernel::measured_bindings`]: crate::kernel::CompiledKernel::measured_bindings
//! [`CompiledKernel::lanes`]: crate::kernel::CompiledKernel::lanes
//! [`CompiledKernel::is_parallel`]: crate::kernel::CompiledKernel::is_parallel
//! [`CompiledKernel::push_constant_bytes`]: crate::kernel::CompiledKernel::push_constant_bytes
//! [`CompiledKernel::salted_paths`]: crate::kernel::CompiledKernel::salted_paths
//! [`CompiledKernel::storage_words`]: crate::kernel::CompiledKernel::storage_words
//! [`CompiledKernel::thread_loops`]: crate::kernel::CompiledKernel::thread_loops
//! [`CompiledKernel::workgroup_size`]: crate::kernel::CompiledKernel::workgroup_size
//! [`KernelConfig::loop_bound`]: crate::kernel::KernelConfig::loop_bound
//! [`KernelConfig::has_stress`]: crate::kernel::KernelConfig::has_stress
//! [`ResultSlot::Done`]: crate::kernel::ResultSlot::Done

mod formulas;
mod parameters;

pub(crate) use formulas::{
    InstanceSlot, WordArithmetic, WordOperation, class_and_group, instance_index, instance_slot,
    receipt_hash, result_word, unit_index,
};
pub use parameters::Parameters;
pub(crate) use parameters::{Parameter, push_constants};

/// The word of the first class's receipt in the rendezvous area of a group.
pub const FIRST_RECEIPT: u32 = 1;
/// Words of the cache lines of a rendezvous area.
const RENDEZVOUS_LINES: u32 = 32;
/// Returns the words between the rendezvous areas of two groups, for this many concurrent classes: separate
/// cache lines, with room for all receipts and the [overflow word](overflow_word).
pub fn rendezvous_spacing(classes: u32) -> u32 {
    let words = overflow_word(classes).saturating_add(1).div_ceil(RENDEZVOUS_LINES);
    words.saturating_mul(RENDEZVOUS_LINES)
}
/// Returns the word of the rendezvous buffer that counts invocations outside the grid, for this many
/// concurrent classes: it follows the receipts of group 0.
pub fn overflow_word(classes: u32) -> u32 {
    FIRST_RECEIPT.saturating_add(classes)
}
/// Returns a salt from random bits. As a number of 32 or 64 bits that consists of such words, it is a normal
/// floating-point number, which no conversion changes.
pub fn salt_from_bits(bits: u32) -> u32 {
    const ONE_OF_THE_EXPONENT: u32 = 1 << 30;
    const ZERO_OF_THE_EXPONENT: u32 = 1 << 23;
    (bits | ONE_OF_THE_EXPONENT) & !ZERO_OF_THE_EXPONENT
}
/// Texels in a row of a two-dimensional image; every device supports this width.
pub const IMAGE_WIDTH: u32 = 4096;
