//! The contract between a kernel and whoever runs it, in words and as code: the push constants are one list
//! ([`Parameters`]), and the formulas below are written once, for numbers and for the instructions of kernels.
//!
//! # Where things run
//! The threads of a test are its **roles**. Roles that share a workgroup (same queue family and workgroup number) form a
//! *workgroup class*; within it, roles that share a subgroup form a *subgroup class*; within that, roles are told apart
//! by lane. With `C` workgroup classes and `G` = [`Parameters::groups`], a dispatch has `C × G` workgroups.
//! Workgroup `w` plays class `(w / p + t) mod C` for group `(w / (p × C)) × p + w mod p`, where `p` =
//! [`Parameters::pairing`] divides `G` and `t` = [`Parameters::turn`]: 1 alternates the classes, `G` gives each class one contiguous range.
//! The `L` = [`Kernel::lanes`] slots of a workgroup (each slot hosts every role of the workgroup's class once) are
//! permuted: slot `l` of group `g` and class `c` plays instance
//! `((g × group_multiplier + c × group_offset) mod G) × L + (l × lane_multiplier + c × lane_offset) mod L`.
//! Multipliers are co-prime to `G` and to `L`; no product of the formulas here may exceed 32 bits. Where several kernels
//! run at the same time, `c` in this formula counts the classes of all of them: it begins at [`Kernel::first_class`].
//!
//! Where every role has a workgroup of its own, slot `l` is the invocation with local index `l`. Otherwise the subgroup
//! with id `s` hosts subgroup class `(s + t) mod S` of the workgroup's class, where `t` = [`Parameters::turn`] again and `S` is
//! the number of subgroups of a workgroup (drivers that run one subgroup after the other then show every order), and its lane `j` is slot `j mod L` of that
//! subgroup's `j / L`-th role, both in the order of the threads. `L` is then the subgroup size over the number of roles
//! in the fullest subgroup (of any kernel of the [program](crate::Program)), and a workgroup has as many subgroups as the
//! class with the most. Lanes without a role idle, but meet in control barriers.
//!
//! Where each invocation plays every thread ([`Kernel::parallel`]), there are `G` workgroups, and workgroup `w` is the only one of group
//! `w`: in every round it plays all classes, in the order of their threads, with the slots and instances that the formula above gives
//! the classes of that group. `group_offset` is co-prime to `G` and `G` at least `C`, so that the threads of an instance are played by
//! different workgroups. They all meet in word 0, and `a` below is `G` or less.
//!
//! Where a variant gives workgroups a [size](crate::variant::WorkgroupShape), the invocation with local index `i` (whatever the sizes in x, y and
//! z) stands for lane `i mod L` of the subgroup with id `i / L`, each role has such a subgroup for itself, in the order of the threads,
//! and `S` is the number of roles in the fullest class. `L` is the size over `S`, or less where another kernel of the program has less.
//! Invocations from `L × S` on idle, but meet in control barriers.
//!
//! # Where things lie
//! Every round `k` of `K` = [`Parameters::rounds`] has instances of its own: instance index `n = k × G × L + i`.
//! Storage number `s` of instance `n` is unit `n × stride + s × spacing` of the location buffer, with
//! [`Parameters::stride`] at least `storages × spacing` units; a unit has [`Kernel::storage_words`] words. Aliases of a
//! storage are bindings of their own over the same buffer, and all of these bindings are decorated `Aliased`. Result
//! slot `r` of instance `n` is word `(s + r) × K × G × L + n` of the result buffer, where `s` = [`Kernel::first_slot`].
//! The caller fills the result buffer with [`Parameters::poison`] before each dispatch and the location buffer with the
//! initial values.
//!
//! Storages in *images* are texels with the number of the first word of their unit: word `w` is texel `(w mod 4096,
//! w / 4096)` of a two-dimensional image and texel `w` of a one-dimensional image or a texel buffer. Images hold the initial values like the location
//! buffer does; a texel buffer shows the location buffer itself. Where a kernel has [`Kernel::addresses`], the address
//! of the location buffer stands behind the parameters among the push constants, at byte [`Kernel::push_constant_bytes`].
//!
//! Where a variant puts some storages *apart*, a second buffer and other images hold those, each at the same place as it would
//! have in the first ([`Kernel::apart`]); both are filled with the initial values of all.
//!
//! Storages in *workgroup memory* are made and read by the kernel: in every round one invocation of each slot writes the
//! initial values, the workgroup meets in a control barrier, the threads run, the workgroup meets again, and the same
//! invocation writes final values that belong to the outcome to result slots.
//!
//! # Loops
//! A loop of a test makes [`KernelConfig::loop_bound`] turns at most in a round. A thread that has not left its loop by
//! then ends, and its [`ResultSlot::Done`] holds the complement of [`Parameters::done`]: the instance is unresolved.
//!
//! # Meeting
//! With [`Parameters::spin`] > 0, the workgroups of one group meet before round 0 and before every
//! [`Parameters::interval`]-th round after it: one invocation of each adds 1 to word `g × d` of the rendezvous buffer
//! (relaxed, device or queue-family scope) and waits until it reads at least `a × m` at the `m`-th meeting, counted from
//! 1, where `a` = [`Parameters::party`] is `C` or, where not so many workgroups run at once, less. The caller zeroes that
//! buffer before each dispatch. Loads that find someone missing are counted over the whole dispatch: whoever has made `spin` of them does not wait again. So the long wait until all have been scheduled, and the
//! short ones between rounds, have one bound. Who finds all there at the first look came last; the others learn of it
//! only when the news has crossed from one processor to the other, so it makes [`Parameters::hold`] more loads before it
//! goes on. Every invocation waits for itself: no barrier is needed, lanes in lockstep share one wait, and in a workgroup
//! of several subgroups each subgroup begins its rounds no earlier than the other workgroups have arrived. `C` counts
//! the classes of all kernels that run at the same time, and `d` is their [`rendezvous_spacing`]. Where there is one class, there is
//! nobody to wait for.
//!
//! With `M` meetings an invocation spends at most `K` loop iterations on rounds and `(2 + hold) × M + spin` on waiting;
//! some drivers bound the sum silently. Where each thread has a loop of its own ([`Kernel::thread_loops`]), each meeting costs
//! an iteration more for each thread of the kernel, and one besides.
//!
//! # Receipts
//! A driver may leave a dispatch out, execute it twice, or give it push constants of another. So invocation 0 of each workgroup that plays
//! adds the *receipt* of its parameters ([`Parameters::receipt`], odd) to word `g × d + 1 + c` of the rendezvous buffer before it plays,
//! relaxed, where `c` counts the classes of all kernels that run at the same time: whoever finds another number there has not had the
//! dispatch that was asked for. Nobody else touches that word, and a load and a store are enough: how well a device adds is for tests to ask.
//! Kernels of one fixed dispatch are for reading, and have none. Of what is drawn, whoever [claims](crate::carrier) the first place of a workgroup leaves the receipt, and so once,
//! however often a vertex or a fragment is shaded.
//!
//! # Memory stress
//! Kernels that are made with [`KernelConfig::stressed`] have a [`Binding::Scratch`], more push constants and more
//! workgroups: the contract is in [`crate::stress`].

mod formulas;
mod parameters;

pub(crate) use formulas::{
    Arithmetic, Operation, Seat, class_and_group, instance_of, receipt, result_word, seat, unit,
};
pub use parameters::Parameters;
pub(crate) use parameters::{Parameter, push_constants};

/// The word of the first class' receipt at the meeting place of a group.
pub const FIRST_RECEIPT: u32 = 1;
/// Words of the cache lines that a meeting place has for itself.
const RENDEZVOUS_LINES: u32 = 32;
/// Words between the meeting places of two groups, where so many classes run at the same time: cache lines of their own, with room for
/// the receipts of all.
pub fn rendezvous_spacing(classes: u32) -> u32 {
    let words = FIRST_RECEIPT.saturating_add(classes).div_ceil(RENDEZVOUS_LINES);
    words.saturating_mul(RENDEZVOUS_LINES)
}
/// Texels in a row of a two-dimensional image: every device has images of this width.
pub const IMAGE_WIDTH: u32 = 4096;
