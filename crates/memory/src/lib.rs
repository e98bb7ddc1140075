//! Budget, ledger, meters and counting allocator: who may hold how many bytes, and who does
