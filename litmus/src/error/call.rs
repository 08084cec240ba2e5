//! Mistakes in the API calls of a test: invalid calls, and cases that the derivation does not settle.

use miette::Diagnostic;
use thiserror::Error;

use crate::span::Span;

mistakes! {
/// An error in API calls. Its label states what was expected at that position.
pub enum CallError of call {
    /// An unknown stage word.
    UnknownStage unknown_stage { word: String }
        => "unknown stage `{word}`",
        "expected `compute`, `vertex`, `fragment`, `transfer`, `host`, `all`, `top`, `bottom` or `none`";
    /// VUID-vkCmdPipelineBarrier-srcAccessMask-02815 and -dstAccessMask-02816.
    AccessOfAnotherStage access_of_another_stage { access: &'static str }
        => "access mask that its stage does not have: `{access}`",
        "expected accesses of the stages before the `:` (VUID-vkCmdPipelineBarrier-srcAccessMask-02815)";
    /// API calls must be before or after all instructions of a shader.
    CallWithinThread amid_thread
        => "call within a thread", "expected the call before or after all instructions of the shader";
    /// A queue with transfers only has no shaders; its work would be copy commands.
    QueueWithoutShaders copy
        => "copy: a thread of a queue without shaders",
        "expected loads and stores of a shader, which every queue of a test supports";
    /// VUID-vkCmdSetEvent-stageMask-01149: the device sets an event after its own stages only.
    HostEvent event_of_host
        => "event of the host", "expected stages of the device (VUID-vkCmdSetEvent-stageMask-01149)";
    /// Events are never reset here, and setting a set event orders nothing.
    RepeatedEvent event_twice { event: String }
        => "event `{event}` is set or awaited twice", "expected one `set` and one `await`";
    /// VUID-vkCmdWaitEvents-pEvents-01163: set and wait must be on one queue.
    EventOnAnotherQueue event_of_another_queue { event: String }
        => "event `{event}` of another queue", "expected the `set` on the same queue, or a semaphore";
    /// VUID-VkSubmitInfo-pSignalSemaphores-03242.
    NonIncreasingSemaphore falling_semaphore { semaphore: String }
        => "values of semaphore `{semaphore}` that do not increase",
        "expected a value greater than those that its queue has signalled before \
         (VUID-VkSubmitInfo-pSignalSemaphores-03242)";
    /// Timelines start at 0: a signal must be greater, and a wait for 0 orders nothing.
    ZeroSemaphoreValue zero_value { semaphore: String }
        => "semaphore `{semaphore}` at 0, its initial value", "expected a value of at least 1";
    HostCommand command_of_host
        => "command of a queue in a thread of the host",
        "expected `signal`, `wait`, `submit`, `flush` or `invalidate`";
    /// Calls and explicitly written relations in one test.
    MixedWithRelations beside_relations
        => "calls together with relations", "expected either calls, or `ssw`, `avdevice` and `visdevice`";
    /// A semaphore without a signal that may end the wait.
    UnsignalledSemaphore endless_wait { semaphore: String }
        => "wait without a signal: `{semaphore}`", "expected a `signal` of it with at least this value";
    /// An event that is never set, or only after its wait.
    UnsetEvent endless_await { event: String }
        => "wait without a signal: event `{event}`", "expected a `set` of it before this, on the same queue";
    WaitWithoutWork idle_wait { semaphore: String }
        => "wait for a signal without preceding work: `{semaphore}`",
        "expected the `signal` after instructions of a shader";
    /// Waits that can all end only after one another.
    CircularWait circular_wait
        => "wait for a signal that depends on the wait", "expected a signal that does not depend on this wait";
    /// A binary semaphore has one pair of a signal and a wait.
    ReusedBinarySemaphore binary_twice { semaphore: String }
        => "binary semaphore `{semaphore}` is signalled or waited for twice",
        "expected one signal and one wait, or values";
    MixedSemaphoreTypes mixed_semaphore { semaphore: String }
        => "semaphore `{semaphore}` with and without values", "expected a value with each call, or with none";
    /// Half of an ownership transfer.
    UnpairedTransfer half_transfer { half: &'static str }
        => "ownership transfer without its other half",
        "expected the same transfer once in a thread of the queue family {half}";
    /// A transfer in a thread of neither family, or between equal families.
    TransferInOtherFamily foreign_transfer
        => "ownership transfer in a thread of another queue family",
        "expected two families, and the transfer in a thread of one of them";
    UnorderedTransfer unordered_transfer
        => "ownership transfer without a semaphore",
        "expected a `wait` before it, for a `signal` after the other half";
    AccessWithoutOwnership not_owned { location: String }
        => "access of `{location}` by a queue family that does not own it",
        "expected the access before the release or after the acquire";
    /// Not expressible: no thread that the barrier follows ends with exactly the waits that come after the barrier.
    UnorderedReadback unordered_readback
        => "barrier to the host between the signals of two waits",
        "expected a dispatch between this barrier and every signal that a host waits for before it";
    /// Not settled: the order in which several host threads submit.
    UnknownSubmissionOrder submission_order
        => "submissions of several threads of the host to one queue",
        "expected one thread of the host to submit them";
}
}
