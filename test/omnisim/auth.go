package omnisim

import (
	"context"
	"strconv"
	"time"

	"github.com/siderolabs/go-api-signature/pkg/message"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// caller is the signer of a request.
type caller struct {
	identity string
	role     Role
}

type callerKey struct{}

// callerFrom returns the caller of a request and whether it was signed.
func callerFrom(ctx context.Context) (caller, bool) {
	c, ok := ctx.Value(callerKey{}).(caller)

	return c, ok
}

func (s *Server) authenticateUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := s.authenticate(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}

	return handler(ctx, req)
}

func (s *Server) authenticateStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, err := s.authenticate(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}

	return handler(srv, &streamWithContext{ServerStream: stream, ctx: ctx})
}

// allowedSkew is how far the time of a signature may be from the server's: that of Omni.
const allowedSkew = 5 * time.Minute

// SetClock puts the server's clock ahead of the real time, or behind it if the duration is negative, as far as signatures are
// concerned.
func (s *Server) SetClock(ahead time.Duration) { s.clockAhead.Store(int64(ahead)) }

// isTimely reports whether a request was signed at about the server's time.
func (s *Server) isTimely(md metadata.MD) bool {
	values := md.Get(message.TimestampHeaderKey)
	if len(values) == 0 {
		return false
	}

	seconds, err := strconv.ParseInt(values[0], 10, 64)

	return err == nil && time.Now().Add(time.Duration(s.clockAhead.Load())).Sub(time.Unix(seconds, 0)).Abs() <= allowedSkew
}

// authenticate verifies the signature in the request's metadata. Without a signature, every method that is served here
// answers Unauthenticated; so it does if the key is unknown, revoked or expired, or if the signature is of another time, without
// naming which.
func (s *Server) authenticate(ctx context.Context, method string) (context.Context, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	signed := message.NewGRPC(md, method)
	refused := status.Error(codes.Unauthenticated, "invalid signature")

	signature, err := signed.Signature()
	if err != nil {
		return nil, refused
	}

	key, ok := s.accounts.lookup(signature.KeyFingerprint)
	if !ok {
		return nil, refused
	}

	if err = signed.VerifySignature(key.key); err != nil || !s.isTimely(md) {
		return nil, refused
	}

	return context.WithValue(ctx, callerKey{}, caller{identity: key.account, role: key.role}), nil
}

// requireRole refuses callers below the role with Omni's error.
func requireRole(ctx context.Context, role Role) error {
	c, ok := callerFrom(ctx)
	if !ok {
		return status.Error(codes.Unauthenticated, "unauthenticated: missing valid signature")
	}

	if c.role.rank() < role.rank() {
		return status.Errorf(codes.PermissionDenied, "unauthorized: access denied: insufficient role: %q", c.role)
	}

	return nil
}

// streamWithContext is a stream with another context for its handler.
type streamWithContext struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the replaced context.
func (s *streamWithContext) Context() context.Context { return s.ctx }
