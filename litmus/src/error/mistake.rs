//! Parse errors, each with its position and what was expected there.
//!
//! Long because messages, codes and examples are all checked against this one list.

use miette::{Diagnostic, SourceSpan};
use thiserror::Error;

use super::call::CallError;
use super::khronos::KhronosError;
use super::subgroup::SubgroupError;
use crate::span::Span;

impl ParseError {
    /// Returns the position of the error.
    pub fn span(&self) -> Option<SourceSpan> {
        self.labels().and_then(|mut labels| labels.next()).map(|label| *label.inner())
    }
}

mistakes! {
/// An error in the text of a test.
///
/// Its label states what was expected at that position.
pub enum ParseError of parse {
    // The text as a whole.
    /// The text is longer than [`crate::syntax::MAX_TEXT_BYTES`].
    TooLarge too_large { bytes: usize, limit: usize }
        => "text of {bytes} bytes", "expected at most {limit} bytes";
    /// The first word is not a dialect.
    UnknownDialect unknown_dialect { word: String, #[help] help: &'static str }
        => "unknown dialect `{word}`", "expected `VULKAN` or `HSA`";
    /// A limit of the language is exceeded.
    TooMany too_many { what: &'static str, limit: usize }
        => "too many {what}", "expected at most {limit} {what}";
    /// Mistakes beyond the limit of the list.
    MoreMistakes more_mistakes { more: usize }
        => "{more} more errors are not shown", "the first of them";
    /// A comment without an end.
    UnclosedComment unclosed_comment { close: &'static str }
        => "unclosed comment", "expected `{close}` somewhere after this";
    /// A character that cannot begin a token.
    UnexpectedCharacter unexpected_character { character: char }
        => "unexpected character {character:?}", "expected a word, a number or punctuation of the litmus format";
    /// A token that the grammar does not allow here.
    Unexpected unexpected { found: String, expected: &'static str }
        => "unexpected {found}", "expected {expected}";
    NumberTooLarge number_too_large { number: String, bits: u32 }
        => "number `{number}` is too large", "expected a number of at most {bits} bits";
    ReservedName reserved_name { word: String }
        => "`{word}` cannot be the name of a location",
        "expected a name that is not a keyword, register, label or thread";

    // Metadata.
    UnknownKey unknown_key { key: String }
        => "unknown metadata key `{key}`", "expected `expect`, `clause`, `needs`, `origin` or `why`";
    EmptyMetadata empty_metadata { key: &'static str }
        => "no value after `{key}:`", "expected a value";
    /// A second line with a metadata key that may occur once.
    DuplicateMetadata duplicate_metadata { key: String }
        => "second `{key}:` line", "expected at most one";
    /// An `expect:` line without a known verdict.
    BadExpectation bad_expectation { expected: &'static str }
        => "unknown verdict in `expect:`", "expected {expected}";
    /// A `terminates:` line without known progress models.
    BadTermination bad_termination { expected: &'static str }
        => "malformed `terminates:` line", "expected {expected}";
    /// A `reconvergence:` line with an unknown value.
    BadReconvergence bad_reconvergence
        => "malformed `reconvergence:` line",
        "expected `maximal`, or no such line for a shader without the declaration";
    BadClause bad_clause { word: String }
        => "`{word}` is not a clause id", "expected ids such as `VK-SW-01`, separated by blanks";

    // Declarations.
    /// Two words before a name; the first is neither a storage nor a type.
    UnknownStorage unknown_storage { word: String }
        => "unknown storage or type `{word}`",
        "expected `buffer`, `workgroup`, `image` or `address`, then a type such as `u32`, then the name";
    /// An unknown property in brackets.
    UnknownProperty unknown_property { word: String }
        => "unknown property `{word}`", "expected `host`, `noncoherent` or `exclusive`";
    DuplicateLocation duplicate_location { name: String }
        => "location `{name}` is declared twice", "expected another name";
    DuplicateRegister duplicate_register { name: String }
        => "register `{name}` is declared twice", "expected another register";
    /// An initial value copied from, or an alias of, a name that is not declared before.
    UndeclaredTarget undeclared_target { name: String }
        => "`{name}` is not declared before this", "expected a location that is declared earlier";
    UndefinedInRegister undefined_in_register { name: String }
        => "the initial value of `{name}` is undefined", "expected a number, or a location with an initial value";
    AliasTooWide alias_too_wide { name: String, bits: u32 }
        => "alias `{name}` is wider than its storage", "expected a type of at most {bits} bits";
    ValueOutOfRange value_out_of_range { value: i64, ty: &'static str }
        => "{value} does not fit into `{ty}`", "expected values of `{ty}`";
    /// A vector type of more than 16 bytes.
    VectorTooWide vector_too_wide { word: String, bytes: u32 }
        => "`{word}` has {bytes} bytes", "expected a vector of at most 16 bytes";
    /// A number of values, registers or components that differs from the vector's.
    ComponentCount component_count { expected: u8, found: usize }
        => "{found} for a vector of {expected}" (found = component_count_text(*found)),
        "expected {}" (component_count_text(usize::from(*expected)));
    AddressInVector address_in_vector
        => "an address in a vector", "expected numbers";
    /// A whole vector in place of a scalar.
    BareVector bare_vector { name: String, last: u8 }
        => "`{name}` is a vector", "expected one of its components, `{name}[0]` to `{name}[{last}]`";

    // Threads.
    /// Columns must be threads 0, 1, 2, ….
    ThreadOrder thread_order { found: u32, column: usize }
        => "thread `P{found}` in column {column}", "expected `P{column}`: column k is thread k, counted from 0";
    DuplicateThread duplicate_thread { number: u32 }
        => "thread `P{number}` is declared twice", "expected another thread";
    /// A workgroup belongs to one dispatch, and so to one queue.
    WorkgroupOnTwoQueues workgroup_on_two_queues { number: u32 }
        => "workgroup of `P{number}` on two queues",
        "expected the queue of the other threads of its workgroup, or another workgroup";
    UnknownThread unknown_thread { number: u32 }
        => "there is no thread `P{number}`", "expected a thread of the table";
    /// A side of `ssw` names an instruction index beyond its thread's end.
    UnknownInstructionIndex unknown_instruction_index { thread: u32, instruction: u32, length: usize }
        => "thread `P{thread}` has no instruction {instruction}",
        "expected an index below {length}, counted from 0 with labels included";

    // The table.
    /// A row with more cells than there are threads.
    TooManyCells too_many_cells { found: usize, threads: usize }
        => "row of {found} cells for {threads} threads", "expected `;` before this";
    /// A row without its `;`.
    MissingSemicolon missing_semicolon
        => "unterminated row", "expected `;` after this";

    // Instructions.
    /// A word that is not an instruction.
    UnknownInstruction unknown_instruction { word: String }
        => "unknown instruction `{word}`",
        "expected `ld`, `st`, `rmw`, `membar`, `cbar`, `avdevice`, `visdevice`, arithmetic, a label or a branch";
    /// A word that is not a modifier.
    UnknownModifier unknown_modifier { word: String, expected: &'static str }
        => "unknown modifier `.{word}`", "expected {expected}";
    /// A modifier that this instruction does not have, or that is repeated.
    MisplacedModifier misplaced_modifier { word: String, expected: &'static str }
        => "`.{word}` is not allowed here",
        "expected {expected}",
        help "modifiers stand in any order, those that the instruction has, each once";
    /// A word that is not a modifier but resembles one, or names one in another language.
    MisspeltModifier misspelt_modifier { word: String, similar: &'static str }
        => "unknown modifier `.{word}`", "did you mean `.{similar}`?";
    /// An unknown word in place of a scope.
    UnknownScope unknown_scope { word: String }
        => "unknown scope `.{word}`", "expected `.sg`, `.wg`, `.qf`, `.dv`, `.inv` or `.xd`";
    /// An operation that needs a scope has none.
    MissingScope missing_scope
        => "missing scope", "expected `.sg`, `.wg`, `.qf`, `.dv`, `.inv` or `.xd` after this";
    /// A plain access with a scope, but without an operation that uses it.
    ScopeOnPlain scope_on_plain { instruction: &'static str, operation: &'static str }
        => "a plain `{instruction}` has no scope", "expected `.atom` or `.{operation}` before the scope, or none";
    OrderOnPlain order_on_plain { instruction: &'static str }
        => "a plain `{instruction}` has no memory order", "expected `.atom` before the order";
    UnknownExecutionScope unknown_execution_scope { word: String }
        => "unknown execution scope `.{word}`", "expected `.execsg`, `.execwg`, `.execqf` or `.execdv`";
    UnknownStorageClass unknown_storage_class { word: String }
        => "unknown storage class `.{word}`", "expected a class from 0 to 3";
    MissingStorageClass missing_storage_class
        => "missing storage class", "expected `.sc0`, `.sc1`, `.sc2` or `.sc3` after this";
    MissingSemantics missing_semantics
        => "missing storage-class semantics",
        "expected one or more of `.semsc0`, `.semsc1`, `.semsc2`, `.semsc3` after this";
    /// Semantics on an operation without an order.
    SemanticsWithoutOrder semantics_without_order { word: String, orders: &'static str }
        => "`.{word}` without a memory order", "expected {orders} earlier, or no semantics";
    /// `.semav` without a release.
    AvailableWithoutRelease available_without_release
        => "`.semav` without a release", "expected a releasing order with it";
    /// `.semvis` without an acquire.
    VisibleWithoutAcquire visible_without_acquire
        => "`.semvis` without an acquire", "expected an acquiring order with it";
    /// An order that the operation cannot have.
    OrderNotAllowed order_not_allowed { instruction: &'static str, word: String, expected: &'static str }
        => "`{instruction}` cannot be `.{word}`", "expected {expected}";
    OrderOfSplitBarrier order_of_split_barrier { half: &'static str, word: String, expected: &'static str, rule: u16 }
        => "`cbar.{half}` cannot be `.{word}` (VUID-StandaloneSpirv-MemorySemantics-{rule})",
        "expected {expected}, or no order";
    ScopeOfSplitBarrier scope_of_split_barrier { half: &'static str }
        => "`cbar.{half}` with another execution scope (VUID-StandaloneSpirv-OpControlBarrierArriveEXT-13553)",
        "expected `.execwg`, `.execsg`, or neither for a workgroup";
    WaitWithoutArrival wait_without_arrival
        => "`cbar.wait` without `cbar.arrive` (VUID-RuntimeSpirv-OpControlBarrierWaitEXT-13559)",
        "expected an arrival of this execution scope before it, on every path";
    SecondWait second_wait
        => "a second `cbar.wait` (VUID-RuntimeSpirv-OpControlBarrierWaitEXT-13560)",
        "expected an arrival of this execution scope since the last wait, on every path";
    SecondArrival second_arrival
        => "a second `cbar.arrive` (VUID-RuntimeSpirv-OpControlBarrierArriveEXT-13561)",
        "expected a wait of this execution scope since the last arrival, on every path";
    QuorumsDiffer quorums_differ { #[label("the first of them")] first: Span }
        => "the barrier has another quorum elsewhere",
        "expected the quorum of all barriers with this instance and resource";
    /// `.av` on a load or `.vis` on a store.
    WrongCoherence wrong_coherence { instruction: &'static str, word: String }
        => "`{instruction}` cannot be `.{word}`", "expected `.av` on stores, `.vis` on loads";
    /// A read-modify-write without `.atom`.
    RmwNotAtomic rmw_not_atomic
        => "`rmw` is not atomic", "expected `.atom` after this";
    MissingOrder missing_order
        => "`membar` without a memory order", "expected `.acq`, `.rel` or `.acq_rel` after this";
    /// `.uneq_acq` without an acquire for the equal case.
    UnequalTooStrong unequal_too_strong
        => "the unequal case is stronger than the equal one", "expected `.acq` or `.acq_rel` after `.atom`";
    MissingBarrierId missing_barrier_id
        => "control barrier without an instance", "expected a number after this";
    /// `interlock` without `.begin` or `.end`.
    MissingInterlockEnd missing_interlock_end
        => "`interlock` without `.begin` or `.end`", "expected `.begin` or `.end` after this";
    /// Sections of both orders in one test: the order is an execution mode of the whole shader.
    MixedInterlockOrders mixed_interlock_orders
        => "ordered and unordered interlock sections in one test",
        "expected the order of the sections before it: `.unordered` everywhere, or nowhere";
    /// A thread that names itself, or another thread twice.
    OtherThreadExpected other_thread_expected { number: u32 }
        => "thread `P{number}` is not allowed here", "expected another thread, each at most once";
    DeviceThreadExpected device_thread_expected { number: u32 }
        => "thread `P{number}` is a host thread", "expected a device thread";
    SubmittedTwice submitted_twice { number: u32 }
        => "thread `P{number}` is submitted twice", "expected one `submit` of each thread";
    /// A host operation in a device thread, or the reverse.
    WrongPlace wrong_place { what: &'static str, place: &'static str, number: u32 }
        => "{what} in a thread of the {}" (if *place == "host" { "device" } else { "host" }),
        "expected in a thread of the {place}, which `P{number}` is not";
    RegisterExpected register_expected { found: String }
        => "{found} is not a register", "expected a register such as `r0`";
    LocationExpected location_expected { found: String }
        => "{found} is not a location", "expected the name of a location";
    ValueExpected value_expected { found: String }
        => "{found} is not a value", "expected a number or a register";
    LabelExpected label_expected { found: String }
        => "{found} is not a label", "expected a label such as `LC00`";
    UndeclaredLabel undeclared_label { thread: u32, name: String }
        => "thread `P{thread}` has no label `{name}`", "expected a label of the same thread";
    DuplicateLabel duplicate_label { name: String }
        => "label `{name}` is defined twice", "expected another label";
    StorageMismatch storage_mismatch { class: &'static str, name: String, kind: &'static str, expected: &'static str }
        => "`.{class}` access to `{name}`, which is declared `{kind}`", "expected `.{expected}`";
    OutOfBounds out_of_bounds { name: String, bytes: u32 }
        => "access beyond the end of `{name}`", "expected an access within its {bytes} bytes";
    Misaligned misaligned { name: String, bytes: u32 }
        => "misaligned access to `{name}`", "expected an offset that is a multiple of {bytes}";
    BracesExpected braces_expected { vector: String, expected: u8 }
        => "one operand for a vector `{vector}`",
        "expected {expected} in braces, or the type of one component after the modifiers";
    /// Braces in a scalar access.
    ScalarInBraces scalar_in_braces { ty: String }
        => "braces in an access of one `{ty}`",
        "expected one operand, or a vector type such as `.u32x2` after the modifiers";
    /// A vector access that is not plain.
    VectorNotPlain vector_not_plain { what: &'static str, vector: String }
        => "{what} of a vector `{vector}`",
        "expected the type of one component after the modifiers, or a plain access";
    RepeatedDestination repeated_destination { name: String }
        => "register `{name}` twice in one load", "expected another register";

    // The HSA dialect.
    /// A word that is not an HSA instruction.
    UnknownMnemonic unknown_mnemonic { word: String }
        => "unknown instruction `{word}`",
        "expected `ld_`, `st_`, `atomic_`, `atomicnoret_`, `memfence_`, `await_atomic_ld_`, `mov_`, arithmetic, \
         `cmp_`, `cbr_b1` or a label such as `@skip:`";
    BadMnemonic bad_mnemonic { instruction: String, part: &'static str, found: String, expected: &'static str }
        => "`{instruction}` with {found} for its {part}", "expected {expected}";
    UndeclaredLocation undeclared_location { name: String }
        => "location `{name}` is not declared", "expected a location of the initial state";
    SegmentMismatch segment_mismatch { segment: &'static str, name: String, declared: &'static str }
        => "access in the {segment} segment to `{name}`", "expected `{declared}`, the segment of the location";
    GroupAcrossWorkGroups group_across_work_groups { name: String }
        => "`{name}` is used from two work-groups",
        "expected only work-items of one work-group to use a location of the group segment";
    OffsetNotZero offset_not_zero { register: String }
        => "the offset `{register}` may not be zero",
        "expected `and_b32 {register}, a, 0`, `xor_b32 {register}, a, a` or `sub_u32 {register}, a, a`";
    BackwardBranch backward_branch { name: String }
        => "branch back to `@{name}`", "expected a label that is later in the same column";
    CrossingBranches crossing_branches { name: String }
        => "branch regions that cross",
        "expected a label before `@{name}`, the end of the branch around it, or that one";
    PacketAfterItself packet_after_itself { thread: u32 }
        => "packet fences from `P{thread}` to itself", "expected another thread";

    // Conditions.
    /// A register that the code of its thread never mentions.
    UnknownRegister unknown_register { thread: u32, name: String }
        => "thread `P{thread}` has no register `{name}`",
        "expected a register that the thread's code or the initial state mentions";
    RegisterWithoutThread register_without_thread { name: String }
        => "register `{name}` of no thread", "expected the thread before it, as in `P0:{name}`";
    /// A location that the program never mentions.
    UnknownLocation unknown_location { name: String }
        => "unknown location `{name}`", "expected a location that the program or the initial state mentions";
    TermExpected term_expected { found: String }
        => "{found} is not a term", "expected a register such as `P0:r0`, a location or a number";
    ComparisonExpected comparison_expected { found: String }
        => "{found} is not a comparison", "expected `==`, `=`, `!=`, `<`, `<=`, `>` or `>=`";
    /// A parenthesis without its end.
    UnclosedParenthesis unclosed_parenthesis
        => "unclosed parenthesis", "expected `)` for this";
    /// Parentheses and negations nested too deep.
    NestedTooDeep nested_too_deep { limit: usize }
        => "condition is nested too deep", "expected at most {limit} levels of parentheses and negations";
    /// An index into a location other than 0.
    BadIndex bad_index { index: String }
        => "index `{index}` into a location", "expected 0: a location is not an array";
    IndexOutOfRange index_out_of_range { index: String, name: String, last: u8 }
        => "`{name}` has no component {index}", "expected a number from 0 to {last}";
    FilterAfterQuestion filter_after_question
        => "filter after the condition", "expected before `exists`, `~exists`, `forall` or `final`";
    /// Text after the end of the test.
    TrailingText trailing_text
        => "text after the end of the test", "expected the end of the test";

    // Mistakes of sublanguages.
    ..
    /// An error in a subgroup operation.
    Subgroup(SubgroupError),
    /// An error in a `.test` file.
    Khronos(KhronosError),
    /// An error in API calls.
    Call(CallError),
}
}

/// Returns the number of components as text.
fn component_count_text(count: usize) -> String {
    format!("{count} component{}", if count == 1 { "" } else { "s" })
}
