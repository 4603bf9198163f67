module github.com/kproto/kproto/clients/go

go 1.24
