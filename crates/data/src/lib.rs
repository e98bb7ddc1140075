//! Sources, decoding and encoding: files in, batches out, every buffer granted by the ledger
