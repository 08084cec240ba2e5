//! Mistakes in the API calls of a test: invalid calls, and cases that the derivation does not settle.

use miette::Diagnostic;
use thiserror::Error;

use crate::span::Span;

/// An error in API calls. Its label states what was expected at that position.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
#[expect(missing_docs, reason = "the fields are the words of the messages")]
pub enum CallError {
    /// An unknown stage word.
    #[error("unknown stage `{word}`")]
    #[diagnostic(code(litmus::call::unknown_stage))]
    UnknownStage {
        word: String,
        #[label(
            "expected `compute`, `vertex`, `fragment`, `transfer`, `host`, `all`, `top`, `bottom` or `none`"
        )]
        span: Span,
    },
    /// VUID-vkCmdPipelineBarrier-srcAccessMask-02815 and -dstAccessMask-02816.
    #[error("access mask that its stage does not have: `{access}`")]
    #[diagnostic(code(litmus::call::access_of_another_stage))]
    AccessOfAnotherStage {
        access: &'static str,
        #[label(
            "expected accesses of the stages before the `:` (VUID-vkCmdPipelineBarrier-srcAccessMask-02815)"
        )]
        span: Span,
    },
    /// API calls must be before or after all instructions of a shader.
    #[error("call within a thread")]
    #[diagnostic(code(litmus::call::amid_thread))]
    CallWithinThread {
        #[label("expected the call before or after all instructions of the shader")]
        span: Span,
    },
    /// A queue with transfers only has no shaders; its work would be copy commands.
    #[error("copy: a thread of a queue without shaders")]
    #[diagnostic(code(litmus::call::copy))]
    QueueWithoutShaders {
        #[label("expected loads and stores of a shader, which every queue of a test supports")]
        span: Span,
    },
    /// VUID-vkCmdSetEvent-stageMask-01149: the device sets an event after its own stages only.
    #[error("event of the host")]
    #[diagnostic(code(litmus::call::event_of_host))]
    HostEvent {
        #[label("expected stages of the device (VUID-vkCmdSetEvent-stageMask-01149)")]
        span: Span,
    },
    /// Events are never reset here, and setting a set event orders nothing.
    #[error("event `{event}` is set or awaited twice")]
    #[diagnostic(code(litmus::call::event_twice))]
    RepeatedEvent {
        event: String,
        #[label("expected one `set` and one `await`")]
        span: Span,
    },
    /// VUID-vkCmdWaitEvents-pEvents-01163: set and wait must be on one queue.
    #[error("event `{event}` of another queue")]
    #[diagnostic(code(litmus::call::event_of_another_queue))]
    EventOnAnotherQueue {
        event: String,
        #[label("expected the `set` on the same queue, or a semaphore")]
        span: Span,
    },
    /// VUID-VkSubmitInfo-pSignalSemaphores-03242.
    #[error("values of semaphore `{semaphore}` that do not increase")]
    #[diagnostic(code(litmus::call::falling_semaphore))]
    NonIncreasingSemaphore {
        semaphore: String,
        #[label(
            "expected a value greater than those that its queue has signalled before \
             (VUID-VkSubmitInfo-pSignalSemaphores-03242)"
        )]
        span: Span,
    },
    /// Timelines start at 0: a signal must be greater, and a wait for 0 orders nothing.
    #[error("semaphore `{semaphore}` at 0, its initial value")]
    #[diagnostic(code(litmus::call::zero_value))]
    ZeroSemaphoreValue {
        semaphore: String,
        #[label("expected a value of at least 1")]
        span: Span,
    },
    #[error("command of a queue in a thread of the host")]
    #[diagnostic(code(litmus::call::command_of_host))]
    HostCommand {
        #[label("expected `signal`, `wait`, `submit`, `flush` or `invalidate`")]
        span: Span,
    },
    /// Calls and explicitly written relations in one test.
    #[error("calls together with relations")]
    #[diagnostic(code(litmus::call::beside_relations))]
    MixedWithRelations {
        #[label("expected either calls, or `ssw`, `avdevice` and `visdevice`")]
        span: Span,
    },
    /// A semaphore without a signal that may end the wait.
    #[error("wait without a signal: `{semaphore}`")]
    #[diagnostic(code(litmus::call::endless_wait))]
    UnsignalledSemaphore {
        semaphore: String,
        #[label("expected a `signal` of it with at least this value")]
        span: Span,
    },
    /// An event that is never set, or only after its wait.
    #[error("wait without a signal: event `{event}`")]
    #[diagnostic(code(litmus::call::endless_await))]
    UnsetEvent {
        event: String,
        #[label("expected a `set` of it before this, on the same queue")]
        span: Span,
    },
    #[error("wait for a signal without preceding work: `{semaphore}`")]
    #[diagnostic(code(litmus::call::idle_wait))]
    WaitWithoutWork {
        semaphore: String,
        #[label("expected the `signal` after instructions of a shader")]
        span: Span,
    },
    /// Waits that can all end only after one another.
    #[error("wait for a signal that depends on the wait")]
    #[diagnostic(code(litmus::call::circular_wait))]
    CircularWait {
        #[label("expected a signal that does not depend on this wait")]
        span: Span,
    },
    /// A binary semaphore has one pair of a signal and a wait.
    #[error("binary semaphore `{semaphore}` is signalled or waited for twice")]
    #[diagnostic(code(litmus::call::binary_twice))]
    ReusedBinarySemaphore {
        semaphore: String,
        #[label("expected one signal and one wait, or values")]
        span: Span,
    },
    #[error("semaphore `{semaphore}` with and without values")]
    #[diagnostic(code(litmus::call::mixed_semaphore))]
    MixedSemaphoreTypes {
        semaphore: String,
        #[label("expected a value with each call, or with none")]
        span: Span,
    },
    /// Half of an ownership transfer.
    #[error("ownership transfer without its other half")]
    #[diagnostic(code(litmus::call::half_transfer))]
    UnpairedTransfer {
        half: &'static str,
        #[label("expected the same transfer once in a thread of the queue family {half}")]
        span: Span,
    },
    /// A transfer in a thread of neither family, or between equal families.
    #[error("ownership transfer in a thread of another queue family")]
    #[diagnostic(code(litmus::call::foreign_transfer))]
    TransferInOtherFamily {
        #[label("expected two families, and the transfer in a thread of one of them")]
        span: Span,
    },
    #[error("ownership transfer without a semaphore")]
    #[diagnostic(code(litmus::call::unordered_transfer))]
    UnorderedTransfer {
        #[label("expected a `wait` before it, for a `signal` after the other half")]
        span: Span,
    },
    #[error("access of `{location}` by a queue family that does not own it")]
    #[diagnostic(code(litmus::call::not_owned))]
    AccessWithoutOwnership {
        location: String,
        #[label("expected the access before the release or after the acquire")]
        span: Span,
    },
    /// Not expressible: no thread that the barrier follows ends with exactly the waits that come after the barrier.
    #[error("barrier to the host between the signals of two waits")]
    #[diagnostic(code(litmus::call::unordered_readback))]
    UnorderedReadback {
        #[label("expected a dispatch between this barrier and every signal that a host waits for before it")]
        span: Span,
    },
    /// Not settled: the order in which several host threads submit.
    #[error("submissions of several threads of the host to one queue")]
    #[diagnostic(code(litmus::call::submission_order))]
    UnknownSubmissionOrder {
        #[label("expected one thread of the host to submit them")]
        span: Span,
    },
}
