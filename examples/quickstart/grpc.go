package main

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/examples/quickstart/bankpb"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// newGRPC returns the bank as a gRPC server. The rules guard its methods.
func newGRPC(bank *Bank, locker lock.Locker, in guard.Option) *grpc.Server {
	s := grpc.NewServer(grpc.ChainUnaryInterceptor(rules(locker, in)))
	bankpb.RegisterBankServer(s, &service{bank: bank})
	reflection.Register(s) // for grpcurl
	return s
}

type service struct {
	bankpb.UnimplementedBankServer
	bank *Bank
}

func (s *service) Transfer(ctx context.Context, req *bankpb.TransferRequest) (*bankpb.TransferResponse, error) {
	r, err := s.bank.Transfer(ctx, TransferRequest{From: req.GetFrom(), To: req.GetTo(), Cents: req.GetCents()})
	if err != nil {
		return nil, grpcError(err)
	}
	return &bankpb.TransferResponse{From: entry(r.From), To: entry(r.To)}, nil
}

func (s *service) Deposit(ctx context.Context, req *bankpb.DepositRequest) (*bankpb.DepositResponse, error) {
	r, err := s.bank.Deposit(ctx, req.GetAccount(), req.GetCents())
	if err != nil {
		return nil, grpcError(err)
	}
	return &bankpb.DepositResponse{Account: entry(r)}, nil
}

func entry(r Record) *bankpb.Entry { return &bankpb.Entry{Cents: r.Cents, Updates: r.Updates} }

// grpcError is the status of the bank's own errors; for those of a guard the interceptor has one.
func grpcError(err error) error {
	switch {
	case errors.Is(err, errUnknown):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, errAmount), errors.Is(err, errSame):
		return status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, errFunds):
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return status.FromContextError(err).Err()
}
