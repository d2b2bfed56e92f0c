// Package jobs keeps songs that are to be made, and those that were, so that they outlive
// the process: a queue, a record of every job, and the finished audio, all in NATS
// JetStream. The NATS server runs inside the process, without a port, over a folder on
// disk; or it is an outside one that gateways and workers on many machines share.
//
// A job is kept in three places. Its record lies in a key-value bucket and is only changed
// by compare-and-swap, which is what makes a song end exactly once: whoever ends a job
// must have seen its last change. A message in a work queue makes some worker take it up;
// the message is deleted after the record says that the job has ended, and delivered
// again when a worker has not been heard of for some seconds. Finished songs, and the
// codes to render them again, lie in an object store, named by job and try, so that a
// worker that comes too late overwrites nothing.
//
// What is told while a song is made, its progress and the audio so far, is not stored: it
// goes by plain messages from its worker to whoever asks.
package jobs
