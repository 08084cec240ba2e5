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

/// An error in the text of a test.
///
/// Its label states what was expected at that position.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
#[expect(missing_docs, reason = "the fields are the words of the messages")]
pub enum ParseError {
    // The text as a whole.
    /// The text is longer than [`crate::syntax::MAX_TEXT_BYTES`].
    #[error("text of {bytes} bytes")]
    #[diagnostic(code(litmus::parse::too_large))]
    TooLarge {
        bytes: usize,
        limit: usize,
        #[label("expected at most {limit} bytes")]
        span: Span,
    },
    /// The first word is not a dialect.
    #[error("unknown dialect `{word}`")]
    #[diagnostic(code(litmus::parse::unknown_dialect))]
    UnknownDialect {
        word: String,
        #[help]
        help: &'static str,
        #[label("expected `VULKAN` or `HSA`")]
        span: Span,
    },
    /// A limit of the language is exceeded.
    #[error("too many {what}")]
    #[diagnostic(code(litmus::parse::too_many))]
    TooMany {
        what: &'static str,
        limit: usize,
        #[label("expected at most {limit} {what}")]
        span: Span,
    },
    /// Mistakes beyond the limit of the list.
    #[error("{more} more errors are not shown")]
    #[diagnostic(code(litmus::parse::more_mistakes))]
    MoreMistakes {
        more: usize,
        #[label("the first of them")]
        span: Span,
    },
    /// A comment without an end.
    #[error("unclosed comment")]
    #[diagnostic(code(litmus::parse::unclosed_comment))]
    UnclosedComment {
        close: &'static str,
        #[label("expected `{close}` somewhere after this")]
        span: Span,
    },
    /// A character that cannot begin a token.
    #[error("unexpected character {character:?}")]
    #[diagnostic(code(litmus::parse::unexpected_character))]
    UnexpectedCharacter {
        character: char,
        #[label("expected a word, a number or punctuation of the litmus format")]
        span: Span,
    },
    /// A token that the grammar does not allow here.
    #[error("unexpected {found}")]
    #[diagnostic(code(litmus::parse::unexpected))]
    Unexpected {
        found: String,
        expected: &'static str,
        #[label("expected {expected}")]
        span: Span,
    },
    #[error("number `{number}` is too large")]
    #[diagnostic(code(litmus::parse::number_too_large))]
    NumberTooLarge {
        number: String,
        bits: u32,
        #[label("expected a number of at most {bits} bits")]
        span: Span,
    },
    #[error("`{word}` cannot be the name of a location")]
    #[diagnostic(code(litmus::parse::reserved_name))]
    ReservedName {
        word: String,
        #[label("expected a name that is not a keyword, register, label or thread")]
        span: Span,
    },

    // Metadata.
    #[error("unknown metadata key `{key}`")]
    #[diagnostic(code(litmus::parse::unknown_key))]
    UnknownKey {
        key: String,
        #[label("expected `expect`, `clause`, `needs`, `origin` or `why`")]
        span: Span,
    },
    #[error("no value after `{key}:`")]
    #[diagnostic(code(litmus::parse::empty_metadata))]
    EmptyMetadata {
        key: &'static str,
        #[label("expected a value")]
        span: Span,
    },
    /// A second line with a metadata key that may occur once.
    #[error("second `{key}:` line")]
    #[diagnostic(code(litmus::parse::duplicate_metadata))]
    DuplicateMetadata {
        key: String,
        #[label("expected at most one")]
        span: Span,
    },
    /// An `expect:` line without a known verdict.
    #[error("unknown verdict in `expect:`")]
    #[diagnostic(code(litmus::parse::bad_expectation))]
    BadExpectation {
        expected: &'static str,
        #[label("expected {expected}")]
        span: Span,
    },
    /// A `terminates:` line without known progress models.
    #[error("malformed `terminates:` line")]
    #[diagnostic(code(litmus::parse::bad_termination))]
    BadTermination {
        expected: &'static str,
        #[label("expected {expected}")]
        span: Span,
    },
    /// A `reconvergence:` line with an unknown value.
    #[error("malformed `reconvergence:` line")]
    #[diagnostic(code(litmus::parse::bad_reconvergence))]
    BadReconvergence {
        #[label("expected `maximal`, or no such line for a shader without the declaration")]
        span: Span,
    },
    #[error("`{word}` is not a clause id")]
    #[diagnostic(code(litmus::parse::bad_clause))]
    BadClause {
        word: String,
        #[label("expected ids such as `VK-SW-01`, separated by blanks")]
        span: Span,
    },

    // Declarations.
    /// Two words before a name; the first is neither a storage nor a type.
    #[error("unknown storage or type `{word}`")]
    #[diagnostic(code(litmus::parse::unknown_storage))]
    UnknownStorage {
        word: String,
        #[label(
            "expected `buffer`, `workgroup`, `image` or `address`, then a type such as `u32`, then the name"
        )]
        span: Span,
    },
    /// An unknown property in brackets.
    #[error("unknown property `{word}`")]
    #[diagnostic(code(litmus::parse::unknown_property))]
    UnknownProperty {
        word: String,
        #[label("expected `host`, `noncoherent` or `exclusive`")]
        span: Span,
    },
    #[error("location `{name}` is declared twice")]
    #[diagnostic(code(litmus::parse::duplicate_location))]
    DuplicateLocation {
        name: String,
        #[label("expected another name")]
        span: Span,
    },
    #[error("register `{name}` is declared twice")]
    #[diagnostic(code(litmus::parse::duplicate_register))]
    DuplicateRegister {
        name: String,
        #[label("expected another register")]
        span: Span,
    },
    /// An initial value copied from, or an alias of, a name that is not declared before.
    #[error("`{name}` is not declared before this")]
    #[diagnostic(code(litmus::parse::undeclared_target))]
    UndeclaredTarget {
        name: String,
        #[label("expected a location that is declared earlier")]
        span: Span,
    },
    #[error("the initial value of `{name}` is undefined")]
    #[diagnostic(code(litmus::parse::undefined_in_register))]
    UndefinedInRegister {
        name: String,
        #[label("expected a number, or a location with an initial value")]
        span: Span,
    },
    #[error("alias `{name}` is wider than its storage")]
    #[diagnostic(code(litmus::parse::alias_too_wide))]
    AliasTooWide {
        name: String,
        bits: u32,
        #[label("expected a type of at most {bits} bits")]
        span: Span,
    },
    #[error("{value} does not fit into `{ty}`")]
    #[diagnostic(code(litmus::parse::value_out_of_range))]
    ValueOutOfRange {
        value: i64,
        ty: &'static str,
        #[label("expected values of `{ty}`")]
        span: Span,
    },

    /// A vector type of more than 16 bytes.
    #[error("`{word}` has {bytes} bytes")]
    #[diagnostic(code(litmus::parse::vector_too_wide))]
    VectorTooWide {
        word: String,
        bytes: u32,
        #[label("expected a vector of at most 16 bytes")]
        span: Span,
    },
    /// A number of values, registers or components that differs from the vector's.
    #[error("{found} for a vector of {expected}", found = component_count_text(*found))]
    #[diagnostic(code(litmus::parse::component_count))]
    ComponentCount {
        expected: u8,
        found: usize,
        #[label("expected {}", component_count_text(usize::from(*expected)))]
        span: Span,
    },
    #[error("an address in a vector")]
    #[diagnostic(code(litmus::parse::address_in_vector))]
    AddressInVector {
        #[label("expected numbers")]
        span: Span,
    },
    /// A whole vector in place of a scalar.
    #[error("`{name}` is a vector")]
    #[diagnostic(code(litmus::parse::bare_vector))]
    BareVector {
        name: String,
        last: u8,
        #[label("expected one of its components, `{name}[0]` to `{name}[{last}]`")]
        span: Span,
    },

    // Threads.
    /// Columns must be threads 0, 1, 2, ….
    #[error("thread `P{found}` in column {column}")]
    #[diagnostic(code(litmus::parse::thread_order))]
    ThreadOrder {
        found: u32,
        column: usize,
        #[label("expected `P{column}`: column k is thread k, counted from 0")]
        span: Span,
    },
    #[error("thread `P{number}` is declared twice")]
    #[diagnostic(code(litmus::parse::duplicate_thread))]
    DuplicateThread {
        number: u32,
        #[label("expected another thread")]
        span: Span,
    },
    /// A workgroup belongs to one dispatch, and so to one queue.
    #[error("workgroup of `P{number}` on two queues")]
    #[diagnostic(code(litmus::parse::workgroup_on_two_queues))]
    WorkgroupOnTwoQueues {
        number: u32,
        #[label("expected the queue of the other threads of its workgroup, or another workgroup")]
        span: Span,
    },
    #[error("there is no thread `P{number}`")]
    #[diagnostic(code(litmus::parse::unknown_thread))]
    UnknownThread {
        number: u32,
        #[label("expected a thread of the table")]
        span: Span,
    },
    /// A side of `ssw` names an instruction index beyond its thread's end.
    #[error("thread `P{thread}` has no instruction {instruction}")]
    #[diagnostic(code(litmus::parse::unknown_instruction_index))]
    UnknownInstructionIndex {
        thread: u32,
        instruction: u32,
        length: usize,
        #[label("expected an index below {length}, counted from 0 with labels included")]
        span: Span,
    },

    // The table.
    /// A row with more cells than there are threads.
    #[error("row of {found} cells for {threads} threads")]
    #[diagnostic(code(litmus::parse::too_many_cells))]
    TooManyCells {
        found: usize,
        threads: usize,
        #[label("expected `;` before this")]
        span: Span,
    },
    /// A row without its `;`.
    #[error("unterminated row")]
    #[diagnostic(code(litmus::parse::missing_semicolon))]
    MissingSemicolon {
        #[label("expected `;` after this")]
        span: Span,
    },

    // Instructions.
    /// A word that is not an instruction.
    #[error("unknown instruction `{word}`")]
    #[diagnostic(code(litmus::parse::unknown_instruction))]
    UnknownInstruction {
        word: String,
        #[label(
            "expected `ld`, `st`, `rmw`, `membar`, `cbar`, `avdevice`, `visdevice`, arithmetic, a label or a branch"
        )]
        span: Span,
    },
    /// A word that is not a modifier.
    #[error("unknown modifier `.{word}`")]
    #[diagnostic(code(litmus::parse::unknown_modifier))]
    UnknownModifier {
        word: String,
        expected: &'static str,
        #[label("expected {expected}")]
        span: Span,
    },
    /// A modifier that this instruction does not have, or that is repeated.
    #[error("`.{word}` is not allowed here")]
    #[diagnostic(
        code(litmus::parse::misplaced_modifier),
        help("modifiers stand in any order, those that the instruction has, each once")
    )]
    MisplacedModifier {
        word: String,
        expected: &'static str,
        #[label("expected {expected}")]
        span: Span,
    },
    /// A word that is not a modifier but resembles one, or names one in another language.
    #[error("unknown modifier `.{word}`")]
    #[diagnostic(code(litmus::parse::misspelt_modifier))]
    MisspeltModifier {
        word: String,
        similar: &'static str,
        #[label("did you mean `.{similar}`?")]
        span: Span,
    },
    /// An unknown word in place of a scope.
    #[error("unknown scope `.{word}`")]
    #[diagnostic(code(litmus::parse::unknown_scope))]
    UnknownScope {
        word: String,
        #[label("expected `.sg`, `.wg`, `.qf`, `.dv`, `.inv` or `.xd`")]
        span: Span,
    },
    /// An operation that needs a scope has none.
    #[error("missing scope")]
    #[diagnostic(code(litmus::parse::missing_scope))]
    MissingScope {
        #[label("expected `.sg`, `.wg`, `.qf`, `.dv`, `.inv` or `.xd` after this")]
        span: Span,
    },
    /// A plain access with a scope, but without an operation that uses it.
    #[error("a plain `{instruction}` has no scope")]
    #[diagnostic(code(litmus::parse::scope_on_plain))]
    ScopeOnPlain {
        instruction: &'static str,
        operation: &'static str,
        #[label("expected `.atom` or `.{operation}` before the scope, or none")]
        span: Span,
    },
    #[error("a plain `{instruction}` has no memory order")]
    #[diagnostic(code(litmus::parse::order_on_plain))]
    OrderOnPlain {
        instruction: &'static str,
        #[label("expected `.atom` before the order")]
        span: Span,
    },
    #[error("unknown execution scope `.{word}`")]
    #[diagnostic(code(litmus::parse::unknown_execution_scope))]
    UnknownExecutionScope {
        word: String,
        #[label("expected `.execsg`, `.execwg`, `.execqf` or `.execdv`")]
        span: Span,
    },
    #[error("unknown storage class `.{word}`")]
    #[diagnostic(code(litmus::parse::unknown_storage_class))]
    UnknownStorageClass {
        word: String,
        #[label("expected a class from 0 to 3")]
        span: Span,
    },
    #[error("missing storage class")]
    #[diagnostic(code(litmus::parse::missing_storage_class))]
    MissingStorageClass {
        #[label("expected `.sc0`, `.sc1`, `.sc2` or `.sc3` after this")]
        span: Span,
    },
    #[error("missing storage-class semantics")]
    #[diagnostic(code(litmus::parse::missing_semantics))]
    MissingSemantics {
        #[label("expected one or more of `.semsc0`, `.semsc1`, `.semsc2`, `.semsc3` after this")]
        span: Span,
    },
    /// Semantics on an operation without an order.
    #[error("`.{word}` without a memory order")]
    #[diagnostic(code(litmus::parse::semantics_without_order))]
    SemanticsWithoutOrder {
        word: String,
        orders: &'static str,
        #[label("expected {orders} earlier, or no semantics")]
        span: Span,
    },
    /// `.semav` without a release.
    #[error("`.semav` without a release")]
    #[diagnostic(code(litmus::parse::available_without_release))]
    AvailableWithoutRelease {
        #[label("expected a releasing order with it")]
        span: Span,
    },
    /// `.semvis` without an acquire.
    #[error("`.semvis` without an acquire")]
    #[diagnostic(code(litmus::parse::visible_without_acquire))]
    VisibleWithoutAcquire {
        #[label("expected an acquiring order with it")]
        span: Span,
    },
    /// An order that the operation cannot have.
    #[error("`{instruction}` cannot be `.{word}`")]
    #[diagnostic(code(litmus::parse::order_not_allowed))]
    OrderNotAllowed {
        instruction: &'static str,
        word: String,
        expected: &'static str,
        #[label("expected {expected}")]
        span: Span,
    },
    #[error("`cbar.{half}` cannot be `.{word}` (VUID-StandaloneSpirv-MemorySemantics-{rule})")]
    #[diagnostic(code(litmus::parse::order_of_split_barrier))]
    OrderOfSplitBarrier {
        half: &'static str,
        word: String,
        expected: &'static str,
        rule: u16,
        #[label("expected {expected}, or no order")]
        span: Span,
    },
    #[error(
        "`cbar.{half}` with another execution scope (VUID-StandaloneSpirv-OpControlBarrierArriveEXT-13553)"
    )]
    #[diagnostic(code(litmus::parse::scope_of_split_barrier))]
    ScopeOfSplitBarrier {
        half: &'static str,
        #[label("expected `.execwg`, `.execsg`, or neither for a workgroup")]
        span: Span,
    },
    #[error("`cbar.wait` without `cbar.arrive` (VUID-RuntimeSpirv-OpControlBarrierWaitEXT-13559)")]
    #[diagnostic(code(litmus::parse::wait_without_arrival))]
    WaitWithoutArrival {
        #[label("expected an arrival of this execution scope before it, on every path")]
        span: Span,
    },
    #[error("a second `cbar.wait` (VUID-RuntimeSpirv-OpControlBarrierWaitEXT-13560)")]
    #[diagnostic(code(litmus::parse::second_wait))]
    SecondWait {
        #[label("expected an arrival of this execution scope since the last wait, on every path")]
        span: Span,
    },
    #[error("a second `cbar.arrive` (VUID-RuntimeSpirv-OpControlBarrierArriveEXT-13561)")]
    #[diagnostic(code(litmus::parse::second_arrival))]
    SecondArrival {
        #[label("expected a wait of this execution scope since the last arrival, on every path")]
        span: Span,
    },
    #[error("the barrier has another quorum elsewhere")]
    #[diagnostic(code(litmus::parse::quorums_differ))]
    QuorumsDiffer {
        #[label("expected the quorum of all barriers with this instance and resource")]
        span: Span,
        #[label("the first of them")]
        first: Span,
    },
    /// `.av` on a load or `.vis` on a store.
    #[error("`{instruction}` cannot be `.{word}`")]
    #[diagnostic(code(litmus::parse::wrong_coherence))]
    WrongCoherence {
        instruction: &'static str,
        word: String,
        #[label("expected `.av` on stores, `.vis` on loads")]
        span: Span,
    },
    /// A read-modify-write without `.atom`.
    #[error("`rmw` is not atomic")]
    #[diagnostic(code(litmus::parse::rmw_not_atomic))]
    RmwNotAtomic {
        #[label("expected `.atom` after this")]
        span: Span,
    },
    #[error("`membar` without a memory order")]
    #[diagnostic(code(litmus::parse::missing_order))]
    MissingOrder {
        #[label("expected `.acq`, `.rel` or `.acq_rel` after this")]
        span: Span,
    },
    /// `.uneq_acq` without an acquire for the equal case.
    #[error("the unequal case is stronger than the equal one")]
    #[diagnostic(code(litmus::parse::unequal_too_strong))]
    UnequalTooStrong {
        #[label("expected `.acq` or `.acq_rel` after `.atom`")]
        span: Span,
    },
    #[error("control barrier without an instance")]
    #[diagnostic(code(litmus::parse::missing_barrier_id))]
    MissingBarrierId {
        #[label("expected a number after this")]
        span: Span,
    },
    /// `interlock` without `.begin` or `.end`.
    #[error("`interlock` without `.begin` or `.end`")]
    #[diagnostic(code(litmus::parse::missing_interlock_end))]
    MissingInterlockEnd {
        #[label("expected `.begin` or `.end` after this")]
        span: Span,
    },
    /// Sections of both orders in one test: the order is an execution mode of the whole shader.
    #[error("ordered and unordered interlock sections in one test")]
    #[diagnostic(code(litmus::parse::mixed_interlock_orders))]
    MixedInterlockOrders {
        #[label("expected the order of the sections before it: `.unordered` everywhere, or nowhere")]
        span: Span,
    },
    /// A thread that names itself, or another thread twice.
    #[error("thread `P{number}` is not allowed here")]
    #[diagnostic(code(litmus::parse::other_thread_expected))]
    OtherThreadExpected {
        number: u32,
        #[label("expected another thread, each at most once")]
        span: Span,
    },
    #[error("thread `P{number}` is a host thread")]
    #[diagnostic(code(litmus::parse::device_thread_expected))]
    DeviceThreadExpected {
        number: u32,
        #[label("expected a device thread")]
        span: Span,
    },
    #[error("thread `P{number}` is submitted twice")]
    #[diagnostic(code(litmus::parse::submitted_twice))]
    SubmittedTwice {
        number: u32,
        #[label("expected one `submit` of each thread")]
        span: Span,
    },
    /// A host operation in a device thread, or the reverse.
    #[error("{what} in a thread of the {}", if *place == "host" { "device" } else { "host" })]
    #[diagnostic(code(litmus::parse::wrong_place))]
    WrongPlace {
        what: &'static str,
        place: &'static str,
        number: u32,
        #[label("expected in a thread of the {place}, which `P{number}` is not")]
        span: Span,
    },
    #[error("{found} is not a register")]
    #[diagnostic(code(litmus::parse::register_expected))]
    RegisterExpected {
        found: String,
        #[label("expected a register such as `r0`")]
        span: Span,
    },
    #[error("{found} is not a location")]
    #[diagnostic(code(litmus::parse::location_expected))]
    LocationExpected {
        found: String,
        #[label("expected the name of a location")]
        span: Span,
    },
    #[error("{found} is not a value")]
    #[diagnostic(code(litmus::parse::value_expected))]
    ValueExpected {
        found: String,
        #[label("expected a number or a register")]
        span: Span,
    },
    #[error("{found} is not a label")]
    #[diagnostic(code(litmus::parse::label_expected))]
    LabelExpected {
        found: String,
        #[label("expected a label such as `LC00`")]
        span: Span,
    },
    #[error("thread `P{thread}` has no label `{name}`")]
    #[diagnostic(code(litmus::parse::undeclared_label))]
    UndeclaredLabel {
        thread: u32,
        name: String,
        #[label("expected a label of the same thread")]
        span: Span,
    },
    #[error("label `{name}` is defined twice")]
    #[diagnostic(code(litmus::parse::duplicate_label))]
    DuplicateLabel {
        name: String,
        #[label("expected another label")]
        span: Span,
    },
    #[error("`.{class}` access to `{name}`, which is declared `{kind}`")]
    #[diagnostic(code(litmus::parse::storage_mismatch))]
    StorageMismatch {
        class: &'static str,
        name: String,
        kind: &'static str,
        expected: &'static str,
        #[label("expected `.{expected}`")]
        span: Span,
    },
    #[error("access beyond the end of `{name}`")]
    #[diagnostic(code(litmus::parse::out_of_bounds))]
    OutOfBounds {
        name: String,
        bytes: u32,
        #[label("expected an access within its {bytes} bytes")]
        span: Span,
    },
    #[error("misaligned access to `{name}`")]
    #[diagnostic(code(litmus::parse::misaligned))]
    Misaligned {
        name: String,
        bytes: u32,
        #[label("expected an offset that is a multiple of {bytes}")]
        span: Span,
    },

    #[error("one operand for a vector `{vector}`")]
    #[diagnostic(code(litmus::parse::braces_expected))]
    BracesExpected {
        vector: String,
        expected: u8,
        #[label("expected {expected} in braces, or the type of one component after the modifiers")]
        span: Span,
    },
    /// Braces in a scalar access.
    #[error("braces in an access of one `{ty}`")]
    #[diagnostic(code(litmus::parse::scalar_in_braces))]
    ScalarInBraces {
        ty: String,
        #[label("expected one operand, or a vector type such as `.u32x2` after the modifiers")]
        span: Span,
    },
    /// A vector access that is not plain.
    #[error("{what} of a vector `{vector}`")]
    #[diagnostic(code(litmus::parse::vector_not_plain))]
    VectorNotPlain {
        what: &'static str,
        vector: String,
        #[label("expected the type of one component after the modifiers, or a plain access")]
        span: Span,
    },
    #[error("register `{name}` twice in one load")]
    #[diagnostic(code(litmus::parse::repeated_destination))]
    RepeatedDestination {
        name: String,
        #[label("expected another register")]
        span: Span,
    },

    // The HSA dialect.
    /// A word that is not an HSA instruction.
    #[error("unknown instruction `{word}`")]
    #[diagnostic(code(litmus::parse::unknown_mnemonic))]
    UnknownMnemonic {
        word: String,
        #[label(
            "expected `ld_`, `st_`, `atomic_`, `atomicnoret_`, `memfence_`, `await_atomic_ld_`, `mov_`, arithmetic, `cmp_`, `cbr_b1` or a label such as `@skip:`"
        )]
        span: Span,
    },
    #[error("`{instruction}` with {found} for its {part}")]
    #[diagnostic(code(litmus::parse::bad_mnemonic))]
    BadMnemonic {
        instruction: String,
        part: &'static str,
        found: String,
        expected: &'static str,
        #[label("expected {expected}")]
        span: Span,
    },
    #[error("location `{name}` is not declared")]
    #[diagnostic(code(litmus::parse::undeclared_location))]
    UndeclaredLocation {
        name: String,
        #[label("expected a location of the initial state")]
        span: Span,
    },
    #[error("access in the {segment} segment to `{name}`")]
    #[diagnostic(code(litmus::parse::segment_mismatch))]
    SegmentMismatch {
        segment: &'static str,
        name: String,
        declared: &'static str,
        #[label("expected `{declared}`, the segment of the location")]
        span: Span,
    },
    #[error("`{name}` is used from two work-groups")]
    #[diagnostic(code(litmus::parse::group_across_work_groups))]
    GroupAcrossWorkGroups {
        name: String,
        #[label("expected only work-items of one work-group to use a location of the group segment")]
        span: Span,
    },
    #[error("the offset `{register}` may not be zero")]
    #[diagnostic(code(litmus::parse::offset_not_zero))]
    OffsetNotZero {
        register: String,
        #[label(
            "expected `and_b32 {register}, a, 0`, `xor_b32 {register}, a, a` or `sub_u32 {register}, a, a`"
        )]
        span: Span,
    },
    #[error("branch back to `@{name}`")]
    #[diagnostic(code(litmus::parse::backward_branch))]
    BackwardBranch {
        name: String,
        #[label("expected a label that is later in the same column")]
        span: Span,
    },
    #[error("branch regions that cross")]
    #[diagnostic(code(litmus::parse::crossing_branches))]
    CrossingBranches {
        name: String,
        #[label("expected a label before `@{name}`, the end of the branch around it, or that one")]
        span: Span,
    },
    #[error("packet fences from `P{thread}` to itself")]
    #[diagnostic(code(litmus::parse::packet_after_itself))]
    PacketAfterItself {
        thread: u32,
        #[label("expected another thread")]
        span: Span,
    },

    // Conditions.
    /// A register that the code of its thread never mentions.
    #[error("thread `P{thread}` has no register `{name}`")]
    #[diagnostic(code(litmus::parse::unknown_register))]
    UnknownRegister {
        thread: u32,
        name: String,
        #[label("expected a register that the thread's code or the initial state mentions")]
        span: Span,
    },
    #[error("register `{name}` of no thread")]
    #[diagnostic(code(litmus::parse::register_without_thread))]
    RegisterWithoutThread {
        name: String,
        #[label("expected the thread before it, as in `P0:{name}`")]
        span: Span,
    },
    /// A location that the program never mentions.
    #[error("unknown location `{name}`")]
    #[diagnostic(code(litmus::parse::unknown_location))]
    UnknownLocation {
        name: String,
        #[label("expected a location that the program or the initial state mentions")]
        span: Span,
    },
    #[error("{found} is not a term")]
    #[diagnostic(code(litmus::parse::term_expected))]
    TermExpected {
        found: String,
        #[label("expected a register such as `P0:r0`, a location or a number")]
        span: Span,
    },
    #[error("{found} is not a comparison")]
    #[diagnostic(code(litmus::parse::comparison_expected))]
    ComparisonExpected {
        found: String,
        #[label("expected `==`, `=`, `!=`, `<`, `<=`, `>` or `>=`")]
        span: Span,
    },
    /// A parenthesis without its end.
    #[error("unclosed parenthesis")]
    #[diagnostic(code(litmus::parse::unclosed_parenthesis))]
    UnclosedParenthesis {
        #[label("expected `)` for this")]
        span: Span,
    },
    /// Parentheses and negations nested too deep.
    #[error("condition is nested too deep")]
    #[diagnostic(code(litmus::parse::nested_too_deep))]
    NestedTooDeep {
        limit: usize,
        #[label("expected at most {limit} levels of parentheses and negations")]
        span: Span,
    },
    /// An index into a location other than 0.
    #[error("index `{index}` into a location")]
    #[diagnostic(code(litmus::parse::bad_index))]
    BadIndex {
        index: String,
        #[label("expected 0: a location is not an array")]
        span: Span,
    },
    #[error("`{name}` has no component {index}")]
    #[diagnostic(code(litmus::parse::index_out_of_range))]
    IndexOutOfRange {
        index: String,
        name: String,
        last: u8,
        #[label("expected a number from 0 to {last}")]
        span: Span,
    },
    #[error("filter after the condition")]
    #[diagnostic(code(litmus::parse::filter_after_question))]
    FilterAfterQuestion {
        #[label("expected before `exists`, `~exists`, `forall` or `final`")]
        span: Span,
    },
    /// Text after the end of the test.
    #[error("text after the end of the test")]
    #[diagnostic(code(litmus::parse::trailing_text))]
    TrailingText {
        #[label("expected the end of the test")]
        span: Span,
    },

    // Mistakes of sublanguages.
    /// An error in a subgroup operation.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Subgroup(#[from] SubgroupError),
    /// An error in a `.test` file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Khronos(#[from] KhronosError),
    /// An error in API calls.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Call(#[from] CallError),
}

/// Returns the number of components as text.
fn component_count_text(count: usize) -> String {
    format!("{count} component{}", if count == 1 { "" } else { "s" })
}
