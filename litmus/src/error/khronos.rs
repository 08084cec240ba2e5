//! Mistakes in a `.test` file: input that its reference reader ignores, and forms that its model cannot
//! represent.

use miette::Diagnostic;
use thiserror::Error;

use crate::span::Span;

mistakes! {
/// An error in a `.test` file. Its label states what was expected at that position.
pub enum KhronosError of khronos {
    /// A line that begins with a blank: the reference reader ignores its keyword or comment.
    Indented indented
        => "the line is indented", "expected the line to begin here";
    /// Text after the end of a complete line.
    TrailingText trailing_text { what: &'static str }
        => "text after the end of {what}",
        "expected the end of the line",
        help "a comment `//` not at the start of its line";
    /// A word without a meaning in instructions.
    UnknownWord unknown_word { word: String }
        => "unknown word `{word}`",
        "expected st, ld, rmw, membar, cbar, avdevice, visdevice, atom, acq, rel, av, vis, semav, semvis, \
         nonpriv, sc0, sc1, semsc0, semsc1, scopesg, scopewg, scopeqf or scopedev";
    MissingOperation missing_operation
        => "an instruction without an operation",
        "expected st, ld, rmw, membar, cbar, avdevice or visdevice among its words";
    /// Words of different instructions in one.
    TwoOperations two_operations { first: &'static str, second: &'static str }
        => "`{first}` and `{second}` in one instruction", "expected one of them";
    RmwNotAtomic rmw_not_atomic
        => "a read-modify-write that is not atomic", "expected `.atom`";
    /// A word that the instruction cannot have.
    MisplacedWord misplaced_word { word: &'static str, problem: &'static str }
        => "`{word}` {problem}", "expected no such word here";
    MissingClass missing_class
        => "an access without a storage class", "expected `.sc0` or `.sc1`";
    TwoClasses two_classes
        => "an access of two storage classes", "expected `.sc0` or `.sc1`";
    /// An atomic access or a barrier without a scope.
    MissingScope missing_scope
        => "no scope", "expected `.scopesg`, `.scopewg`, `.scopeqf` or `.scopedev`";
    /// Two scopes in one instruction.
    TwoScopes two_scopes
        => "two scopes", "expected one scope";
    MissingOrder missing_order
        => "a memory barrier without an order", "expected `.acq` or `.rel`";
    MissingSemantics missing_semantics
        => "an order without storage-class semantics", "expected `.semsc0` or `.semsc1` with `.acq` or `.rel`";
    /// Semantics without the order that they need.
    SemanticsWithoutOrder semantics_without_order { word: &'static str, order: &'static str }
        => "`{word}` without `.{order}`", "expected `.{order}` too";
    /// A location name was expected.
    MissingLocation missing_location
        => "no location", "expected the name of a location: letters, digits and `_`, and no digit first";
    /// A number was expected.
    NotANumber not_a_number { expected: &'static str }
        => "not a number", "expected {expected}";
    /// A new outer group without the inner groups.
    GroupNotClosed group_not_closed { outer: &'static str, inner: &'static str }
        => "{outer} without {inner}", "expected {inner} before the next instruction";
    /// A group or thread without an instruction.
    EmptyGroup empty_group { directive: &'static str }
        => "nothing follows `{directive}`", "expected an instruction after it";
    /// Two threads with one number.
    DuplicateThread duplicate_thread { number: u32 }
        => "a second thread {number}", "expected a number that no thread has";
    /// A number that no thread has.
    UnknownThread unknown_thread { number: u32 }
        => "no thread {number}",
        "expected the number of a thread with an instruction",
        help "`NEWTHREAD` without a number counts up from 0, so that the first thread has number 1";
    /// `SSW` or `SLOC` of an item with itself.
    PairWithItself pair_with_itself { keyword: &'static str, what: &'static str }
        => "`{keyword}` of a {what} with itself", "expected two different ones";
    RepeatedBarrier repeated_barrier { instance: i64 }
        => "barrier instance {instance} twice in one thread",
        "expected an instance that the thread has not executed yet";
    CrossedBarriers crossed_barriers { instance: i64, other: i64 }
        => "barrier instances {instance} and {other} in different order in two threads",
        "expected instance {instance} before {other}, as in an earlier thread";
    /// Members of one barrier instance that differ.
    UnequalBarriers unequal_barriers { instance: i64 }
        => "barrier instance {instance} is not the same everywhere",
        "expected the scope, order and storage classes of its first member";
    UnknownTerm unknown_term
        => "a query of unknown terms",
        "expected `consistent[X]`, or `#dr` or `#rs` compared with a number, joined by `&&`";
    /// A file without an instruction.
    NoInstruction no_instruction
        => "no instruction", "expected an instruction somewhere";
}
}
