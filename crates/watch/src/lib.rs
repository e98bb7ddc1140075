//! The supervisor: starts a job, holds it under the line, records it, and outlives it
