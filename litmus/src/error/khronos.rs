//! Mistakes in a `.test` file: input that its reference reader ignores, and forms that its model cannot
//! represent.

use miette::Diagnostic;
use thiserror::Error;

use crate::span::Span;

/// An error in a `.test` file. Its label states what was expected at that position.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
#[expect(missing_docs, reason = "the fields are the words of the messages")]
pub enum KhronosError {
    /// A line that begins with a blank: the reference reader ignores its keyword or comment.
    #[error("the line is indented")]
    #[diagnostic(code(litmus::khronos::indented))]
    Indented {
        #[label("expected the line to begin here")]
        span: Span,
    },
    /// Text after the end of a complete line.
    #[error("text after the end of {what}")]
    #[diagnostic(code(litmus::khronos::trailing_text), help("a comment `//` not at the start of its line"))]
    TrailingText {
        what: &'static str,
        #[label("expected the end of the line")]
        span: Span,
    },
    /// A word without a meaning in instructions.
    #[error("unknown word `{word}`")]
    #[diagnostic(code(litmus::khronos::unknown_word))]
    UnknownWord {
        word: String,
        #[label(
            "expected st, ld, rmw, membar, cbar, avdevice, visdevice, atom, acq, rel, av, vis, semav, semvis, nonpriv, \
             sc0, sc1, semsc0, semsc1, scopesg, scopewg, scopeqf or scopedev"
        )]
        span: Span,
    },
    #[error("an instruction without an operation")]
    #[diagnostic(code(litmus::khronos::missing_operation))]
    MissingOperation {
        #[label("expected st, ld, rmw, membar, cbar, avdevice or visdevice among its words")]
        span: Span,
    },
    /// Words of different instructions in one.
    #[error("`{first}` and `{second}` in one instruction")]
    #[diagnostic(code(litmus::khronos::two_operations))]
    TwoOperations {
        first: &'static str,
        second: &'static str,
        #[label("expected one of them")]
        span: Span,
    },
    #[error("a read-modify-write that is not atomic")]
    #[diagnostic(code(litmus::khronos::rmw_not_atomic))]
    RmwNotAtomic {
        #[label("expected `.atom`")]
        span: Span,
    },
    /// A word that the instruction cannot have.
    #[error("`{word}` {problem}")]
    #[diagnostic(code(litmus::khronos::misplaced_word))]
    MisplacedWord {
        word: &'static str,
        problem: &'static str,
        #[label("expected no such word here")]
        span: Span,
    },
    #[error("an access without a storage class")]
    #[diagnostic(code(litmus::khronos::missing_class))]
    MissingClass {
        #[label("expected `.sc0` or `.sc1`")]
        span: Span,
    },
    #[error("an access of two storage classes")]
    #[diagnostic(code(litmus::khronos::two_classes))]
    TwoClasses {
        #[label("expected `.sc0` or `.sc1`")]
        span: Span,
    },
    /// An atomic access or a barrier without a scope.
    #[error("no scope")]
    #[diagnostic(code(litmus::khronos::missing_scope))]
    MissingScope {
        #[label("expected `.scopesg`, `.scopewg`, `.scopeqf` or `.scopedev`")]
        span: Span,
    },
    /// Two scopes in one instruction.
    #[error("two scopes")]
    #[diagnostic(code(litmus::khronos::two_scopes))]
    TwoScopes {
        #[label("expected one scope")]
        span: Span,
    },
    #[error("a memory barrier without an order")]
    #[diagnostic(code(litmus::khronos::missing_order))]
    MissingOrder {
        #[label("expected `.acq` or `.rel`")]
        span: Span,
    },
    #[error("an order without storage-class semantics")]
    #[diagnostic(code(litmus::khronos::missing_semantics))]
    MissingSemantics {
        #[label("expected `.semsc0` or `.semsc1` with `.acq` or `.rel`")]
        span: Span,
    },
    /// Semantics without the order that they need.
    #[error("`{word}` without `.{order}`")]
    #[diagnostic(code(litmus::khronos::semantics_without_order))]
    SemanticsWithoutOrder {
        word: &'static str,
        order: &'static str,
        #[label("expected `.{order}` too")]
        span: Span,
    },
    /// A location name was expected.
    #[error("no location")]
    #[diagnostic(code(litmus::khronos::missing_location))]
    MissingLocation {
        #[label("expected the name of a location: letters, digits and `_`, and no digit first")]
        span: Span,
    },
    /// A number was expected.
    #[error("not a number")]
    #[diagnostic(code(litmus::khronos::not_a_number))]
    NotANumber {
        #[label("expected {expected}")]
        span: Span,
        expected: &'static str,
    },
    /// A new outer group without the inner groups.
    #[error("{outer} without {inner}")]
    #[diagnostic(code(litmus::khronos::group_not_closed))]
    GroupNotClosed {
        outer: &'static str,
        inner: &'static str,
        #[label("expected {inner} before the next instruction")]
        span: Span,
    },
    /// A group or thread without an instruction.
    #[error("nothing follows `{directive}`")]
    #[diagnostic(code(litmus::khronos::empty_group))]
    EmptyGroup {
        directive: &'static str,
        #[label("expected an instruction after it")]
        span: Span,
    },
    /// Two threads with one number.
    #[error("a second thread {number}")]
    #[diagnostic(code(litmus::khronos::duplicate_thread))]
    DuplicateThread {
        number: u32,
        #[label("expected a number that no thread has")]
        span: Span,
    },
    /// A number that no thread has.
    #[error("no thread {number}")]
    #[diagnostic(
        code(litmus::khronos::unknown_thread),
        help("`NEWTHREAD` without a number counts up from 0, so that the first thread has number 1")
    )]
    UnknownThread {
        number: u32,
        #[label("expected the number of a thread with an instruction")]
        span: Span,
    },
    /// `SSW` or `SLOC` of an item with itself.
    #[error("`{keyword}` of a {what} with itself")]
    #[diagnostic(code(litmus::khronos::pair_with_itself))]
    PairWithItself {
        keyword: &'static str,
        what: &'static str,
        #[label("expected two different ones")]
        span: Span,
    },
    #[error("barrier instance {instance} twice in one thread")]
    #[diagnostic(code(litmus::khronos::repeated_barrier))]
    RepeatedBarrier {
        instance: i64,
        #[label("expected an instance that the thread has not executed yet")]
        span: Span,
    },
    #[error("barrier instances {instance} and {other} in different order in two threads")]
    #[diagnostic(code(litmus::khronos::crossed_barriers))]
    CrossedBarriers {
        instance: i64,
        other: i64,
        #[label("expected instance {instance} before {other}, as in an earlier thread")]
        span: Span,
    },
    /// Members of one barrier instance that differ.
    #[error("barrier instance {instance} is not the same everywhere")]
    #[diagnostic(code(litmus::khronos::unequal_barriers))]
    UnequalBarriers {
        instance: i64,
        #[label("expected the scope, order and storage classes of its first member")]
        span: Span,
    },
    #[error("a query of unknown terms")]
    #[diagnostic(code(litmus::khronos::unknown_term))]
    UnknownTerm {
        #[label("expected `consistent[X]`, or `#dr` or `#rs` compared with a number, joined by `&&`")]
        span: Span,
    },
    /// A file without an instruction.
    #[error("no instruction")]
    #[diagnostic(code(litmus::khronos::no_instruction))]
    NoInstruction {
        #[label("expected an instruction somewhere")]
        span: Span,
    },
}
